//! A group's table on the device, and chunks of scalars that pass through.

use std::fmt;
use std::ops::Range;

use blstrs::Scalar;

use super::table::{BaseCurve, BaseWindows, FixedBaseParams, HOST_WIDTH};
use crate::device::{
    Arena, Device, DeviceSlice, Kernel, Ledger, Lifetime, PinnedBuffer, Slot, Stream,
    copy_parallel, elements_mut,
};
use crate::error::Result;
use crate::topic::Topic;

/// Threads in a block of the kernel.
const THREADS: u32 = 128;

/// Chunks under way at a time: one is filled or emptied by the host while another is copied and a third
/// one computed.
const LANES: usize = 3;

/// Scalars of a thread in a full launch: of their sums all are inverted at the price of one inversion.
const ROWS: usize = 8;

/// Multiplies one base.
pub struct Multiplier<C: BaseCurve> {
    windows: BaseWindows,
    kernel: Kernel,
    blocks: u32,
    /// Scalars of a launch: some rows of all threads.
    chunk: usize,
    table: DeviceSlice<C::Affine>,
    lanes: Vec<Lane<C>>,
    /// Everything above lies in it.
    _arena: Arena,
}

/// The buffers of a chunk.
struct Lane<C: BaseCurve> {
    stream: Stream,
    /// Of the host: scalars, and points.
    pinned: [PinnedBuffer; 2],
    buffers: Buffers<C>,
    /// Which of the caller's points come back here.
    pending: Range<usize>,
}

struct Buffers<C: BaseCurve> {
    scalars: DeviceSlice<Scalar>,
    points: DeviceSlice<C::Affine>,
    kept: DeviceSlice<C::Affine>,
}

/// Places of a lane's buffers.
struct LaneSlots<C: BaseCurve> {
    scalars: Slot<Scalar>,
    points: Slot<C::Affine>,
    kept: Slot<C::Affine>,
}

impl<C: BaseCurve> Multiplier<C> {
    /// Makes the table, on the device with the help of a small one from the host.
    ///
    /// # Errors
    /// Too little memory; a driver that fails.
    pub fn new(device: &Device, width: u32) -> Result<Self> {
        let windows = BaseWindows::new(width);
        let small = BaseWindows::new(width.min(HOST_WIDTH));
        let blocks = device.info().multiprocessors * C::BLOCKS;
        let chunk = ROWS * blocks as usize * THREADS as usize;

        let mut ledger = Ledger::new("multiples of a generator");
        let always = Lifetime::RESIDENT;
        let table = ledger.reserve::<C::Affine>("table", windows.points(), always);
        let host_table = ledger.reserve::<C::Affine>("small table", small.points(), always);
        let lanes: Vec<_> = (0..LANES)
            .map(|_| LaneSlots::<C>::reserve(&mut ledger, chunk))
            .collect();
        let arena = device.arena(&ledger)?;
        let (table, host_table) = (arena.get(table), arena.get(host_table));
        let lanes = lanes.iter().map(|slots| slots.bind(device, &arena));
        let mut multiplier = Multiplier {
            windows: small,
            kernel: device.kernel(Topic::FixedBase, C::KERNEL)?,
            blocks,
            chunk,
            table: host_table,
            lanes: lanes.collect::<Result<_>>()?,
            _arena: arena,
        };
        let stream = device.stream()?;
        stream.upload(host_table, &small.table::<C>())?;
        if windows != small {
            multiplier.make_table(windows, table)?;
        }
        Ok(multiplier)
    }

    /// Computes the table of other windows, and takes it from here on.
    fn make_table(&mut self, windows: BaseWindows, table: DeviceSlice<C::Affine>) -> Result<()> {
        for first in (0..table.len()).step_by(self.chunk) {
            let last = table.len().min(first + self.chunk);
            let params = self.params();
            self.lanes.rotate_left(1);
            let lane = &mut self.lanes[0];
            let scalars = lane.scalars(last - first)?;
            windows.factors(first, scalars);
            lane.launch(&self.kernel, self.blocks, params, table.slice(first..last))?;
        }
        for lane in &self.lanes {
            lane.stream.synchronize()?;
        }
        (self.windows, self.table) = (windows, table);
        Ok(())
    }

    /// out[i] = scalars[i] times the base.
    ///
    /// # Errors
    /// A driver that fails. Nothing is to be computed here any more after that.
    pub fn run(&mut self, scalars: &[Scalar], out: &mut [C::Affine]) -> Result<()> {
        for first in (0..scalars.len()).step_by(self.chunk) {
            let last = scalars.len().min(first + self.chunk);
            let params = self.params();
            self.lanes.rotate_left(1);
            let lane = &mut self.lanes[0];
            lane.collect(out)?;
            copy_parallel(lane.scalars(last - first)?, &scalars[first..last]);
            let points = lane.buffers.points.slice(0..last - first);
            lane.launch(&self.kernel, self.blocks, params, points)?;
            lane.stream
                .download_pinned(points, &mut lane.pinned[1], 0)?;
            lane.pending = first..last;
        }
        self.lanes.iter_mut().try_for_each(|lane| lane.collect(out))
    }

    /// The kernel's parameters but those of a chunk.
    fn params(&self) -> FixedBaseParams {
        FixedBaseParams {
            scalars: 0,
            table: self.table.ptr(),
            points: 0,
            kept: 0,
            len: 0,
            windows: self.windows.count(),
            width: self.windows.width(),
            halves: self.windows.halves(),
        }
    }
}

impl<C: BaseCurve> fmt::Debug for Multiplier<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Multiplier({}, {:?})", C::NAME, self.windows)
    }
}

impl<C: BaseCurve> LaneSlots<C> {
    fn reserve(ledger: &mut Ledger, chunk: usize) -> Self {
        let always = Lifetime::RESIDENT;
        LaneSlots {
            scalars: ledger.reserve("scalars", chunk, always),
            points: ledger.reserve("points", chunk, always),
            // Three field elements for each scalar, a point and a half.
            kept: ledger.reserve("products", chunk + chunk / 2, always),
        }
    }

    fn bind(&self, device: &Device, arena: &Arena) -> Result<Lane<C>> {
        let [scalars, points] = [self.scalars.len(), self.points.len()];
        let [scalars, points] = [
            scalars * size_of::<Scalar>(),
            points * size_of::<C::Affine>(),
        ];
        Ok(Lane {
            stream: device.stream()?,
            pinned: [device.pinned(scalars)?, device.pinned(points)?],
            buffers: Buffers {
                scalars: arena.get(self.scalars),
                points: arena.get(self.points),
                kept: arena.get(self.kept),
            },
            pending: 0..0,
        })
    }
}

impl<C: BaseCurve> Lane<C> {
    /// Where the host puts the scalars of the next launch.
    fn scalars(&mut self, count: usize) -> Result<&mut [Scalar]> {
        Ok(elements_mut(self.pinned[0].bytes_mut()?, count))
    }

    /// Queues the multiples by those scalars.
    fn launch(
        &self,
        kernel: &Kernel,
        blocks: u32,
        params: FixedBaseParams,
        points: DeviceSlice<C::Affine>,
    ) -> Result<()> {
        let scalars = self.buffers.scalars.slice(0..points.len());
        self.stream.upload_pinned(scalars, &self.pinned[0], 0)?;
        let params = FixedBaseParams {
            scalars: scalars.ptr(),
            points: points.ptr(),
            kept: self.buffers.kept.ptr(),
            len: points.len() as u32,
            ..params
        };
        let blocks = blocks.min(params.len.div_ceil(THREADS));
        self.stream.launch(kernel, blocks, THREADS, 0, &params)
    }

    /// Waits for what is under way, and gives it to the caller.
    fn collect(&mut self, out: &mut [C::Affine]) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            return Ok(());
        }
        let points = elements_mut(self.pinned[1].bytes_mut()?, pending.len());
        copy_parallel(&mut out[pending], points);
        Ok(())
    }
}
