//! A transform of points from the host and back.

use std::fmt;
use std::sync::Arc;

use blstrs::{G1Affine, Scalar};
use ff::{Field, PrimeField};
use groth16::key::prepare::GroupTransform;
use groth16::ntt::EvaluationSet;
use groth16::progress::Progress;
use groth16::{BackendError, PhaseTimes};

use super::pass::{
    Butterflies, CombineParams, Pass, PermuteParams, RotateParams, TableParams, TwiddleParams,
};
use crate::backend::BackendFailure;
use crate::device::{
    Arena, Device, DeviceSlice, Event, Kernel, Ledger, Lifetime, Params, PinnedBuffer, Slot,
    Stream, copy_parallel, elements_mut,
};
use crate::error::Result;
use crate::ntt::{inverse_of_size, powers, root_of_order};
use crate::topic::Topic;

/// Threads in a block of the kernels.
const THREADS: u32 = 128;

/// Blocks on a multiprocessor, as in the kernels' launch bounds.
const BLOCKS: u32 = 4;

/// Points that a thread multiplies in a launch.
const ROWS: usize = 16;

/// Multiples of a point in the table.
const TABLE_POINTS: usize = 8;

/// Bytes of the host's points that are on their way at a time.
const PIECE_POINTS: usize = 1 << 19;

/// log₂ of the most points: exponents of twiddles are below 1.5 n and 32-bit numbers.
const LOG_SIZE_MAX: u32 = 30;

/// The curve's parameter, |X|.
const CURVE_PARAMETER: u64 = 0xd201_0000_0001_0000;

/// Transforms points of G1 on a GPU. Takes 192 bytes of its memory for each point, and 1.3 GB.
pub struct GpuGroupTransform {
    device: Device,
    progress: Arc<dyn Progress + Send + Sync>,
    launch_points: Option<usize>,
}

impl GpuGroupTransform {
    /// On a device that is open.
    pub fn on(device: Device) -> Self {
        GpuGroupTransform {
            device,
            progress: Arc::new(()),
            launch_points: None,
        }
    }

    /// Multiplies at most `points` points in a launch, which others on the device have to wait for; without it as
    /// many as take an H200 some 80 ms.
    #[must_use]
    pub fn with_launch_points(self, points: usize) -> Self {
        GpuGroupTransform {
            launch_points: Some(points),
            ..self
        }
    }

    /// Reports the butterflies to `progress`.
    #[must_use]
    pub fn with_progress(self, progress: Arc<dyn Progress + Send + Sync>) -> Self {
        GpuGroupTransform { progress, ..self }
    }

    fn run(
        &self,
        points: &mut [G1Affine],
        set: EvaluationSet,
        scale: Scalar,
    ) -> Result<PhaseTimes> {
        let mut times = PhaseTimes::default();
        let mut ledger = Ledger::new("a transform of points");
        let log_size = points.len().ilog2();
        let plan = Plan::new(log_size, &self.device, self.launch_points, &mut ledger);
        let arena = self.device.arena(&ledger)?;
        let mut transform = Transform::bind(&plan, &self.device, &arena, (set, scale))?;
        times.measure("upload", || transform.upload(points))?;
        times.measure("transform", || transform.run(&*self.progress))?;
        times.measure("download", || transform.download(points))?;
        Ok(times)
    }
}

impl GroupTransform for GpuGroupTransform {
    fn inverse(
        &self,
        points: &mut [G1Affine],
        set: EvaluationSet,
        scale: Scalar,
    ) -> std::result::Result<PhaseTimes, BackendError> {
        let size = points.len();
        if !size.is_power_of_two() || size > 1 << LOG_SIZE_MAX {
            return Err(BackendError::DomainSize { size });
        }
        if size == 1 {
            // The coset's g^0 is 1 as well.
            points[0] = G1Affine::from(points[0] * scale);
            return Ok(PhaseTimes::default());
        }
        let done = self.run(points, set, scale);
        Ok(done.map_err(BackendFailure::from)?)
    }
}

impl fmt::Debug for GpuGroupTransform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuGroupTransform({})", self.device.info().name)
    }
}

/// The buffers of a transform.
struct Plan {
    log_size: u32,
    /// Blocks of a launch.
    blocks: u32,
    /// Points that are multiplied in a launch.
    most: usize,
    points: [Slot<G1Affine>; 2],
    table: Slot<G1Affine>,
    rotated: Slot<G1Affine>,
    kept: Slot<G1Affine>,
    low: Slot<Scalar>,
    high: Slot<Scalar>,
}

impl Plan {
    fn new(
        log_size: u32,
        device: &Device,
        launch_points: Option<usize>,
        ledger: &mut Ledger,
    ) -> Self {
        let size = 1usize << log_size;
        let always = Lifetime::RESIDENT;
        let blocks = device.info().multiprocessors * BLOCKS;
        let threads = blocks as usize * THREADS as usize;
        let most = launch_points.unwrap_or(ROWS * threads).max(4);
        // Where one of two points is multiplied, there are twice as many sums.
        let sums = 2 * most;
        let low_bits = low_bits(log_size);
        Plan {
            log_size,
            blocks,
            most,
            points: [(); 2].map(|()| ledger.reserve("points", size, always)),
            table: ledger.reserve("multiples", TABLE_POINTS * most, always),
            rotated: ledger.reserve("rotated differences", most, always),
            // Three field elements a sum, one and a half points, for whole rows of threads.
            kept: ledger.reserve("products", 3 * (sums + threads) / 2, always),
            low: ledger.reserve("low powers", 1 << low_bits, always),
            high: ledger.reserve("high powers", 1 << (log_size + 1 - low_bits), always),
        }
    }
}

/// log₂ of the table of consecutive powers; the other one's entries are that far apart.
fn low_bits(log_size: u32) -> u32 {
    log_size.div_ceil(2)
}

/// A transform on a device.
struct Transform<'a> {
    plan: &'a Plan,
    stream: Stream,
    kernels: Kernels,
    /// Where the points are, and where the next pass puts them.
    points: [DeviceSlice<G1Affine>; 2],
    table: DeviceSlice<G1Affine>,
    rotated: DeviceSlice<G1Affine>,
    kept: DeviceSlice<G1Affine>,
    low: DeviceSlice<Scalar>,
    high: DeviceSlice<Scalar>,
    pieces: [PinnedBuffer; 2],
    /// Whether the inverse of the fourth root of unity is −|X|³, not |X|³.
    negative: bool,
    coset: bool,
    /// What the last pass multiplies by, Montgomery.
    scale: [u32; 8],
}

struct Kernels {
    permute: Kernel,
    table: Kernel,
    multiply: Kernel,
    rotate: Kernel,
    combine: Kernel,
}

impl<'a> Transform<'a> {
    fn bind(
        plan: &'a Plan,
        device: &Device,
        arena: &Arena,
        (set, scale): (EvaluationSet, Scalar),
    ) -> Result<Self> {
        let kernel = |name| device.kernel(Topic::GroupNtt, name);
        let piece = PIECE_POINTS.min(1 << plan.log_size) * size_of::<G1Affine>();
        let stream = device.stream()?;
        let (low, high) = (arena.get(plan.low), arena.get(plan.high));
        // Of order 2n, so that its odd powers are those of the coset.
        let root = inverse(root_of_order(plan.log_size + 1));
        stream.upload(low, &powers(Scalar::ONE, root, low.len()))?;
        let step = root.pow_vartime([low.len() as u64]);
        stream.upload(high, &powers(Scalar::ONE, step, high.len()))?;
        let fourth = inverse(root_of_order(2));
        let cube = Scalar::from(CURVE_PARAMETER).pow_vartime([3]);
        Ok(Transform {
            plan,
            stream,
            kernels: Kernels {
                permute: kernel("group_ntt_permute")?,
                table: kernel("group_ntt_table")?,
                multiply: kernel("group_ntt_multiply")?,
                rotate: kernel("group_ntt_rotate")?,
                combine: kernel("group_ntt_combine")?,
            },
            points: plan.points.map(|slot| arena.get(slot)),
            table: arena.get(plan.table),
            rotated: arena.get(plan.rotated),
            kept: arena.get(plan.kept),
            low,
            high,
            pieces: [device.pinned(piece)?, device.pinned(piece)?],
            negative: fourth != cube,
            coset: set == EvaluationSet::Coset,
            scale: montgomery_limbs(&(scale * inverse_of_size(plan.log_size))),
        })
    }

    /// Puts the points in bit-reversed order into `points[0]`.
    fn upload(&mut self, points: &[G1Affine]) -> Result<()> {
        let pieces = points.chunks(PIECE_POINTS);
        for (piece, first) in pieces.zip((0..).step_by(PIECE_POINTS)) {
            self.pieces.swap(0, 1);
            copy_parallel(
                elements_mut(self.pieces[0].bytes_mut()?, piece.len()),
                piece,
            );
            let place = self.points[1].slice(first..first + piece.len());
            self.stream.upload_pinned(place, &self.pieces[0], 0)?;
        }
        let params = PermuteParams {
            source: self.points[1].ptr(),
            result: self.points[0].ptr(),
            bits: self.plan.log_size,
            _end: 0,
        };
        let blocks = (points.len() as u32).div_ceil(THREADS);
        self.stream
            .launch(&self.kernels.permute, blocks, THREADS, 0, &params)
    }

    fn download(&mut self, points: &mut [G1Affine]) -> Result<()> {
        let ranges: Vec<_> = (0..points.len())
            .step_by(PIECE_POINTS)
            .map(|first| first..points.len().min(first + PIECE_POINTS))
            .collect();
        // A piece comes while the one before is copied to its place.
        for (i, range) in ranges.iter().enumerate() {
            let from = self.points[0].slice(range.clone());
            self.stream
                .download_pinned(from, &mut self.pieces[i % 2], 0)?;
            if let Some(before) = i.checked_sub(1) {
                self.take(&mut points[ranges[before].clone()], before % 2)?;
            }
        }
        let last = ranges.len() - 1;
        self.take(&mut points[ranges[last].clone()], last % 2)
    }

    fn take(&mut self, points: &mut [G1Affine], piece: usize) -> Result<()> {
        let count = points.len();
        copy_parallel(points, elements_mut(self.pieces[piece].bytes_mut()?, count));
        Ok(())
    }

    /// All passes, launch by launch: the next one is queued while one runs.
    fn run(&mut self, progress: &dyn Progress) -> Result<()> {
        let size = 1usize << self.plan.log_size;
        let passes: Vec<Pass> = Pass::all(self.plan.log_size).collect();
        progress.begin("transform points", (size * passes.len()) as u64);
        let mut under_way: Option<(Event, u64)> = None;
        for pass in passes {
            let count = size >> pass.log_radix;
            let most = self.butterflies(pass);
            for first in (0..count).step_by(most) {
                let butterflies = Butterflies {
                    first: first as u32,
                    count: most.min(count - first) as u32,
                    log_m: pass.log_m,
                    log_radix: pass.log_radix,
                };
                self.launch(pass, butterflies)?;
                let points = u64::from(butterflies.count * pass.radix());
                let queued = (self.stream.record()?, points);
                if let Some((event, points)) = under_way.replace(queued) {
                    event.synchronize()?;
                    progress.advance(points);
                }
            }
            self.points.swap(0, 1);
        }
        self.stream.synchronize()?;
        progress.advance(under_way.map_or(0, |(_, points)| points));
        Ok(())
    }

    /// Butterflies of a launch.
    fn butterflies(&self, pass: Pass) -> usize {
        let first = pass.first_multiplied(self.coset);
        let multiplied = pass.radix() - first.unwrap_or(1);
        self.plan.most / multiplied as usize
    }

    fn launch(&self, pass: Pass, butterflies: Butterflies) -> Result<()> {
        if let Some(first) = pass.first_multiplied(self.coset) {
            self.multiply(pass, butterflies, first)?;
        }
        let points = self.points[0].ptr();
        if pass.log_radix == 2 {
            let params = RotateParams {
                points,
                rotated: self.rotated.ptr(),
                kept: self.kept.ptr(),
                butterflies,
                negative: u32::from(self.negative),
                _end: 0,
            };
            self.launch_for(&self.kernels.rotate, butterflies.count, &params)?;
        }
        let params = CombineParams {
            points,
            rotated: self.rotated.ptr(),
            result: self.points[1].ptr(),
            kept: self.kept.ptr(),
            butterflies,
        };
        let values = butterflies.count << pass.log_radix;
        self.launch_for(&self.kernels.combine, values, &params)
    }

    /// Multiplies the points from `first_quarter` on of each butterfly.
    fn multiply(&self, pass: Pass, butterflies: Butterflies, first_quarter: u32) -> Result<()> {
        let len = butterflies.count * (pass.radix() - first_quarter);
        let table = TableParams {
            points: self.points[0].ptr(),
            table: self.table.ptr(),
            kept: self.kept.ptr(),
            butterflies,
            first_quarter,
            len,
        };
        self.launch_for(&self.kernels.table, len, &table)?;
        let params = TwiddleParams {
            points: self.points[0].ptr(),
            table: self.table.ptr(),
            kept: self.kept.ptr(),
            low: self.low.ptr(),
            high: self.high.ptr(),
            butterflies,
            first_quarter,
            len,
            low_bits: low_bits(self.plan.log_size),
            step: 1 << (self.plan.log_size - pass.log_m - pass.log_radix),
            coset: u32::from(self.coset),
            scaled: u32::from(pass.last),
            scale: self.scale,
        };
        self.launch_for(&self.kernels.multiply, len, &params)
    }

    fn launch_for<P: Params>(&self, kernel: &Kernel, len: u32, params: &P) -> Result<()> {
        let blocks = self.plan.blocks.min(len.div_ceil(THREADS));
        self.stream.launch(kernel, blocks, THREADS, 0, params)
    }
}

fn inverse(root: Scalar) -> Scalar {
    root.invert().unwrap_or(Scalar::ZERO)
}

/// The limbs of a scalar's Montgomery form, which are those of the value times 2^256.
fn montgomery_limbs(scalar: &Scalar) -> [u32; 8] {
    let montgomery = (0..256).fold(*scalar, |value, _| value.double());
    let bytes = montgomery.to_repr();
    std::array::from_fn(|i| {
        let word = &bytes[4 * i..4 * i + 4];
        u32::from_le_bytes([word[0], word[1], word[2], word[3]])
    })
}
