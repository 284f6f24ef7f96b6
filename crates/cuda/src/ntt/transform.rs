//! Transforms of vectors in device memory.

use blstrs::Scalar;
use ff::Field;
use groth16::ntt::EvaluationSet;

use crate::device::{Arena, Device, DeviceSlice, Kernel, Ledger, Lifetime, Params, Slot, Stream};
use crate::error::Result;
use crate::ntt::factor::{Factor, inverse_of_size, powers, root_of_order};
use crate::ntt::levels::{LEVEL_QUARTERS, Quarter, level_roots};
use crate::ntt::multiples::{self, MULTIPLES};
use crate::ntt::passes::{self, Pass, TILE_BITS};
use crate::topic::Topic;

/// log₂ of the largest size: exponents of a root of order 2n are 32-bit numbers.
pub const LOG_SIZE_MAX: u32 = 31;

/// log₂ of the longest table of roots that all passes share: 2^19 factors are 32 MiB, which
/// stay in the second-level cache, and hold all that the second pass of three needs, so that it
/// multiplies once an element instead of twice.
const COARSE_BITS_MAX: u32 = 19;

/// log₂ of the tables that the device makes the coarse one of.
const SEED_BITS: u32 = 10;

const THREADS: u32 = 256;
const TILE_BYTES: u32 = 32 << TILE_BITS;

/// Which way a transform goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Coefficients in bit-reversed order become values in natural order.
    Evaluate,
    /// Values in natural order become n times the coefficients, in bit-reversed order. The
    /// factor is for a [`Scale`] to undo.
    Interpolate,
}

impl Direction {
    /// ω of order 2^`log`, or its inverse.
    fn root_of_order(self, log: u32) -> Scalar {
        let root = root_of_order(log);
        match self {
            Direction::Evaluate => root,
            Direction::Interpolate => root.pow_vartime([(1 << log) - 1]),
        }
    }
}

/// One of the factors that a plan was made with; 0 is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale(pub usize);

/// What a transform computes.
#[derive(Clone, Copy, Debug)]
pub struct Transform {
    /// Which way.
    pub direction: Direction,
    /// Where the values are taken: at ω^i or, with g² = ω, at g·ω^i.
    pub points: EvaluationSet,
    /// What the results are multiplied by; costs nothing where a transform has more than one
    /// pass.
    pub scale: Scale,
    /// Whether results are below r. If not, they are any representatives below 2^256, which
    /// transforms and [`Quotient`](crate::ntt::Quotient)'s other steps accept.
    pub reduced: bool,
}

impl Transform {
    /// Coefficients to reduced values.
    pub fn evaluate(points: EvaluationSet) -> Self {
        Transform {
            direction: Direction::Evaluate,
            points,
            scale: Scale(0),
            reduced: true,
        }
    }

    /// Values to reduced coefficients, times n and `scale`.
    pub fn interpolate(points: EvaluationSet, scale: Scale) -> Self {
        Transform {
            direction: Direction::Interpolate,
            points,
            scale,
            reduced: true,
        }
    }

    /// The same without the last reduction.
    #[must_use]
    pub fn unreduced(self) -> Self {
        Transform {
            reduced: false,
            ..self
        }
    }
}

/// Transforms of one size, before there is a device.
#[derive(Debug, Clone)]
pub struct NttPlan {
    log_size: u32,
    /// Powers of ω_2n are products of an entry of the coarse and one of the fine table.
    fine_bits: u32,
    scales: Vec<Scalar>,
    level_roots: Slot<Quarter>,
    multiples: Slot<[u64; 4]>,
    coarse: Slot<Factor>,
    /// One table for each scale.
    fine: Slot<Factor>,
    seeds: Slot<Scalar>,
}

impl NttPlan {
    /// Transforms of 2^`log_size` elements, with results times 1 or one of `scales`
    /// ([`Scale`] 1, 2, …). The vectors belong to the caller, the tables to this plan.
    ///
    /// # Panics
    /// If `log_size` is above [`LOG_SIZE_MAX`].
    pub fn new(log_size: u32, scales: &[Scalar], ledger: &mut Ledger) -> Self {
        Self::with_coarse_bits(log_size, scales, COARSE_BITS_MAX, ledger)
    }

    /// As [`Self::new`], with another length of the shared table: 2^`coarse_bits` factors at most.
    ///
    /// # Panics
    /// As [`Self::new`].
    pub fn with_coarse_bits(
        log_size: u32,
        scales: &[Scalar],
        coarse_bits: u32,
        ledger: &mut Ledger,
    ) -> Self {
        assert!(log_size <= LOG_SIZE_MAX, "no transform of 2^{log_size}");
        let coarse_bits = coarse_bits.min(log_size + 1);
        let fine_bits = log_size + 1 - coarse_bits;
        let multiples = ledger.reserve("ntt: multiples of r", MULTIPLES, Lifetime::RESIDENT);
        let level_roots = ledger.reserve(
            "ntt: roots of levels",
            2 * LEVEL_QUARTERS,
            Lifetime::RESIDENT,
        );
        let mut resident = |name, len| ledger.reserve(name, len, Lifetime::RESIDENT);
        let coarse = resident("ntt: coarse roots", 1 << coarse_bits);
        let fine = resident("ntt: fine roots", (1 + scales.len()) << fine_bits);
        let seeds =
            (1 << SEED_BITS.min(coarse_bits)) + (1 << coarse_bits.saturating_sub(SEED_BITS));
        NttPlan {
            log_size,
            fine_bits,
            scales: [&[Scalar::ONE], scales].concat(),
            level_roots,
            multiples,
            coarse,
            fine,
            seeds: ledger.reserve("ntt: seeds of roots", seeds, Lifetime::RESIDENT),
        }
    }

    /// log₂ of the number of elements.
    pub fn log_size(&self) -> u32 {
        self.log_size
    }

    /// Loads the kernels and fills the tables in `arena`; waits until they are filled.
    ///
    /// # Errors
    /// A device that fails.
    pub fn bind(&self, device: &Device, arena: &Arena) -> Result<Ntt> {
        let stream = device.stream()?;
        let ntt = Ntt {
            log_size: self.log_size,
            fine_bits: self.fine_bits,
            scaled: self
                .scales
                .iter()
                .map(|scale| *scale != Scalar::ONE)
                .collect(),
            passes: passes::plan(self.log_size),
            level_roots: arena.get(self.level_roots),
            multiples: arena.get(self.multiples),
            coarse: arena.get(self.coarse),
            fine: arena.get(self.fine),
            natural_to_reversed: device.kernel(Topic::Ntt, "ntt_pass_natural_to_reversed")?,
            reversed_to_natural: device.kernel(Topic::Ntt, "ntt_pass_reversed_to_natural")?,
        };
        stream.upload(ntt.multiples, &multiples::table())?;
        for direction in [Direction::Evaluate, Direction::Interpolate] {
            let table = level_roots(|order| direction.root_of_order(order));
            stream.upload(ntt.level_roots(direction), &table)?;
        }
        let root = root_of_order(self.log_size + 1);
        let fine: Vec<Scalar> = self
            .scales
            .iter()
            .flat_map(|scale| powers(*scale, root, 1 << self.fine_bits))
            .collect();
        stream.upload(ntt.fine, &factors(&fine))?;
        self.fill_coarse(device, arena, &stream)?;
        stream.synchronize()?;
        Ok(ntt)
    }

    /// The coarse table from two short ones.
    fn fill_coarse(&self, device: &Device, arena: &Arena, stream: &Stream) -> Result<()> {
        let table = arena.get(self.coarse);
        let coarse_bits = table.len().ilog2();
        let inner_bits = SEED_BITS.min(coarse_bits);
        let root = root_of_order(coarse_bits);
        let step = root.pow_vartime([1 << inner_bits]);
        let seeds = arena.get(self.seeds);
        let (inner, outer) = (
            seeds.slice(0..1 << inner_bits),
            seeds.slice(1 << inner_bits..seeds.len()),
        );
        stream.upload(inner, &powers(Scalar::ONE, root, inner.len()))?;
        stream.upload(outer, &powers(Scalar::ONE, step, outer.len()))?;
        let params = ExpandParams {
            inner: inner.ptr(),
            outer: outer.ptr(),
            table: table.ptr(),
            len: table.len() as u32,
            inner_bits,
        };
        let expand = device.kernel(Topic::Ntt, "ntt_expand_roots")?;
        stream.launch(&expand, params.len.div_ceil(256), 256, 0, &params)
    }
}

fn factors(scalars: &[Scalar]) -> Vec<Factor> {
    scalars.iter().copied().map(Factor::from).collect()
}

/// `ExpandParams` of `kernels/ntt/roots.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct ExpandParams {
    inner: u64,
    outer: u64,
    table: u64,
    len: u32,
    inner_bits: u32,
}

// SAFETY: laid out as the C++ struct.
unsafe impl Params for ExpandParams {}

/// `PassParams` of `kernels/ntt/passes.cu`, where the fields are explained.
#[repr(C)]
#[derive(Clone, Copy)]
struct PassParams {
    eighth: [Factor; 3],
    values: u64,
    multiples: u64,
    level_roots: u64,
    coarse_roots: u64,
    fine_roots: u64,
    elements: u32,
    block_bits: u32,
    levels: u32,
    column_bits: u32,
    direction: u32,
    coset: u32,
    weight_bits: u32,
    fine_bits: u32,
    order_mask: u32,
    has_twiddles: u32,
    has_fine: u32,
    reduces: u32,
}

// SAFETY: laid out as the C++ struct: `Factor` has the same alignment there.
unsafe impl Params for PassParams {}

/// The factors of a pass's matrices.
struct Twiddles {
    /// Whether there are any.
    any: bool,
    /// Whether they have a part in a fine table.
    fine: bool,
    /// Which.
    fine_table: usize,
}

/// Transforms of one size on one device.
#[derive(Debug)]
pub struct Ntt {
    log_size: u32,
    fine_bits: u32,
    /// For each scale whether it is not 1.
    scaled: Vec<bool>,
    passes: Vec<Pass>,
    level_roots: DeviceSlice<Quarter>,
    multiples: DeviceSlice<[u64; 4]>,
    coarse: DeviceSlice<Factor>,
    fine: DeviceSlice<Factor>,
    natural_to_reversed: Kernel,
    reversed_to_natural: Kernel,
}

impl Ntt {
    /// log₂ of the number of elements.
    pub fn log_size(&self) -> u32 {
        self.log_size
    }

    /// Queues `transform` of `values`, in place: one launch a pass. The elements are in Montgomery
    /// form, any representatives below 2^256.
    ///
    /// # Errors
    /// A device that fails.
    ///
    /// # Panics
    /// If `values` does not have n elements, or the plan has no such scale.
    pub fn run(
        &self,
        stream: &Stream,
        values: DeviceSlice<Scalar>,
        transform: Transform,
    ) -> Result<()> {
        assert_eq!(values.len(), 1 << self.log_size, "elements of a transform");
        let count = self.passes.len();
        for step in 0..count {
            let (kernel, index) = match transform.direction {
                Direction::Interpolate => (&self.natural_to_reversed, step),
                Direction::Evaluate => (&self.reversed_to_natural, count - 1 - step),
            };
            let mut params = self.params(values, transform, index);
            params.reduces = (transform.reduced && step == count - 1).into();
            let tiles = (values.len() as u64).div_ceil(1 << TILE_BITS) as u32;
            stream.launch(kernel, tiles, THREADS, TILE_BYTES, &params)?;
        }
        Ok(())
    }

    /// How many elements are multiplied by a factor in a transform.
    pub fn factor_products(&self, transform: Transform) -> f64 {
        let per_element = |index: usize| {
            let flags = self.twiddles(transform, index);
            let twiddles = u32::from(flags.any) + u32::from(flags.fine);
            self.passes[index].products_per_element() + f64::from(twiddles)
        };
        let all: f64 = (0..self.passes.len()).map(per_element).sum();
        all * (1u64 << self.log_size) as f64
    }

    /// Which factors pass `index` multiplies its matrices by.
    fn twiddles(&self, transform: Transform, index: usize) -> Twiddles {
        let pass = self.passes[index];
        let Scale(scale) = transform.scale;
        let coset = transform.points == EvaluationSet::Coset;
        // The scale goes into the pass with the longest blocks.
        let scaled = index == 0 && self.scaled[scale];
        let any = pass.column_bits() > 0 || coset || scaled;
        // Without a coset exponents are even.
        let exponent_bits = self.log_size - pass.block_bits + u32::from(!coset);
        Twiddles {
            any,
            fine: any && (scaled || exponent_bits < self.fine_bits),
            fine_table: if scaled { scale } else { 0 },
        }
    }

    /// The table of one direction.
    fn level_roots(&self, direction: Direction) -> DeviceSlice<Quarter> {
        match direction {
            Direction::Evaluate => self.level_roots.slice(0..LEVEL_QUARTERS),
            Direction::Interpolate => self.level_roots.slice(LEVEL_QUARTERS..2 * LEVEL_QUARTERS),
        }
    }

    /// The parameters of pass `index`, counted from the one with the longest blocks.
    fn params(
        &self,
        values: DeviceSlice<Scalar>,
        transform: Transform,
        index: usize,
    ) -> PassParams {
        let pass = self.passes[index];
        let Twiddles {
            any,
            fine,
            fine_table,
        } = self.twiddles(transform, index);
        PassParams {
            eighth: eighth_roots(transform.direction),
            values: values.ptr(),
            multiples: self.multiples.ptr(),
            level_roots: self.level_roots(transform.direction).ptr(),
            coarse_roots: self.coarse.ptr(),
            fine_roots: self
                .fine
                .slice(fine_table << self.fine_bits..(fine_table + 1) << self.fine_bits)
                .ptr(),
            elements: values.len() as u32,
            block_bits: pass.block_bits,
            levels: pass.levels,
            column_bits: pass.tile_column_bits(),
            direction: match transform.direction {
                Direction::Evaluate => 1,
                Direction::Interpolate => u32::MAX,
            },
            coset: (transform.points == EvaluationSet::Coset).into(),
            weight_bits: self.log_size - pass.block_bits,
            fine_bits: self.fine_bits,
            order_mask: u32::MAX >> (31 - self.log_size),
            has_twiddles: any.into(),
            has_fine: fine.into(),
            reduces: 0,
        }
    }
}

/// `EighthRoots` of `kernels/ntt/dft.cuh` for the ω_8 of a direction: ω², (ω − ω³)/2, (ω + ω³)/2.
fn eighth_roots(direction: Direction) -> [Factor; 3] {
    let root = direction.root_of_order(3);
    let half = inverse_of_size(1);
    let (square, cube) = (root.square(), root.cube());
    [square, (root - cube) * half, (root + cube) * half].map(Factor::from)
}
