//! Bases with known logarithms, for tests and benchmarks: (i + 1)·P for all i.

use super::curve::SumCurve;
use super::fold::{Fold, FoldSlots};
use super::params;
use super::rounds::FOLD_THREADS;
use crate::device::{Arena, Device, DeviceSlice, Kernel, Ledger, Lifetime, Slot, Stream};
use crate::error::Result;
use crate::topic::Topic;

/// The making of a progression, planned.
#[derive(Clone, Debug)]
pub struct ProgressionPlan<C> {
    counters: Slot<u32>,
    lists: [Slot<u32>; 2],
    fold: FoldSlots,
    _curve: std::marker::PhantomData<C>,
}

/// Doublings of a progression's length: the number of pairs and of the chunks handed out for each.
const STEPS: usize = 32;

impl<C: SumCurve> ProgressionPlan<C> {
    /// Names the buffers for up to `points` points.
    pub fn new(
        name: &str,
        points: usize,
        multiprocessors: u32,
        ledger: &mut Ledger,
        work: impl Into<Lifetime>,
    ) -> Self {
        let work = work.into();
        let pairs = points.next_power_of_two() / 2;
        let mut list = |what: &str| ledger.reserve(format!("{name}: {what}"), pairs, work);
        ProgressionPlan {
            lists: [list("indices"), list("index of the step")],
            counters: ledger.reserve(format!("{name}: counters"), 2 * STEPS, work),
            fold: FoldSlots::reserve::<C>(name, pairs as u64, multiprocessors, ledger, work),
            _curve: std::marker::PhantomData,
        }
    }

    /// Loads the kernel.
    ///
    /// # Errors
    /// A kernel that is missing.
    pub fn bind(&self, device: &Device, arena: &Arena) -> Result<Progression<C>> {
        Ok(Progression {
            counters: arena.get(self.counters),
            lists: self.lists.map(|list| arena.get(list)),
            fold: self.fold.in_arena::<C>(arena),
            fold_bases: device.kernel(Topic::Msm, C::KERNELS.fold_bases)?,
            reduce_points: device.kernel(Topic::Msm, C::KERNELS.reduce_points)?,
            _curve: std::marker::PhantomData,
        })
    }
}

/// The making of a progression, ready to run.
#[derive(Clone, Debug)]
pub struct Progression<C> {
    counters: DeviceSlice<u32>,
    lists: [DeviceSlice<u32>; 2],
    fold: Fold,
    fold_bases: Kernel,
    reduce_points: Kernel,
    _curve: std::marker::PhantomData<C>,
}

impl<C: SumCurve> Progression<C> {
    /// Fills `points` with 1, 2, 3 … times `first`; waits for the device.
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If more points were asked for than planned.
    pub fn run(
        &self,
        stream: &Stream,
        points: DeviceSlice<C::Affine>,
        first: C::Affine,
    ) -> Result<()> {
        if points.is_empty() {
            return Ok(());
        }
        stream.upload(points.slice(0..1), &[first])?;
        let indices: Vec<u32> = (0..self.lists[0].len() as u32).collect();
        stream.upload(self.lists[0], &indices)?;
        let mut counters = [0; 2 * STEPS];
        let steps: Vec<usize> = (0..STEPS)
            .map(|step| 1 << step)
            .take_while(|&known| known < points.len())
            .collect();
        for (step, &known) in steps.iter().enumerate() {
            counters[step] = known.min(points.len() - known) as u32;
        }
        stream.upload(self.counters, &counters)?;
        // Points 0 … k − 1 give points k … 2k − 1 by adding k·P, which is point k − 1; for that
        // one the addition is a doubling.
        for (step, &known) in steps.iter().enumerate() {
            let pairs = counters[step] as usize;
            let right = self.lists[1].slice(0..pairs);
            stream.upload(right, &vec![known as u32 - 1; pairs])?;
            let params = params::FoldBases {
                source: points.ptr(),
                result: points.slice(known..points.len()).ptr(),
                left: self.lists[0].ptr(),
                right: right.ptr(),
                out: self.lists[0].ptr(),
                scratch: self
                    .fold
                    .scratch(self.counters.slice(STEPS + step..2 * STEPS).ptr()),
                pairs: self.counters.slice(step..STEPS).ptr(),
            };
            self.fold.launch(stream, &self.fold_bases, &params)?;
        }
        let params = params::ReducePoints {
            points: points.ptr(),
            count: points.len() as u32,
            padding: 0,
        };
        let blocks = params.count.div_ceil(FOLD_THREADS);
        stream.launch(&self.reduce_points, blocks, FOLD_THREADS, 0, &params)?;
        stream.synchronize()
    }
}
