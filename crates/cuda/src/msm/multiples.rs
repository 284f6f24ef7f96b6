//! The copies of the bases that let several windows share one set of buckets.

use std::marker::PhantomData;

use super::curve::SumCurve;
use super::fold::{Fold, FoldSlots};
use super::params;
use super::windows::Windows;
use crate::device::{Arena, Device, DeviceSlice, Kernel, Ledger, Lifetime, Slot, Stream};
use crate::error::Result;
use crate::topic::Topic;

/// The making of copies, planned.
#[derive(Clone, Debug)]
pub struct MultiplesPlan<C> {
    counters: Slot<u32>,
    fold: FoldSlots,
    _curve: PhantomData<C>,
}

impl<C: SumCurve> MultiplesPlan<C> {
    /// Names the buffers for up to `points` bases and `copies` copies of them.
    pub fn new(
        name: &str,
        points: usize,
        copies: u32,
        multiprocessors: u32,
        ledger: &mut Ledger,
        work: impl Into<Lifetime>,
    ) -> Self {
        let work = work.into();
        MultiplesPlan {
            counters: ledger.reserve(format!("{name}: counters"), copies as usize, work),
            fold: FoldSlots::reserve::<C>(name, points as u64, multiprocessors, ledger, work),
            _curve: PhantomData,
        }
    }

    /// Loads the kernel.
    ///
    /// # Errors
    /// A kernel that is missing.
    pub fn bind(&self, device: &Device, arena: &Arena) -> Result<Multiples<C>> {
        Ok(Multiples {
            counters: arena.get(self.counters),
            fold: self.fold.in_arena::<C>(arena),
            kernel: device.kernel(Topic::Msm, C::KERNELS.multiples)?,
            _curve: PhantomData,
        })
    }
}

/// The making of copies, ready to run.
#[derive(Clone, Debug)]
pub struct Multiples<C> {
    counters: DeviceSlice<u32>,
    fold: Fold,
    kernel: Kernel,
    _curve: PhantomData<C>,
}

impl<C: SumCurve> Multiples<C> {
    /// Queues the making of the copies that `windows` needs: `bases` has room for all of them, and
    /// the first `points` places hold the bases themselves.
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If there is no room for the copies.
    pub fn run(
        &self,
        stream: &Stream,
        bases: DeviceSlice<C::Affine>,
        points: usize,
        windows: &Windows,
    ) -> Result<()> {
        stream.zero(self.counters)?;
        for copy in 1..windows.copies() as usize {
            let params = params::Multiples {
                source: bases.slice((copy - 1) * points..copy * points).ptr(),
                result: bases.slice(copy * points..(copy + 1) * points).ptr(),
                scratch: self.fold.scratch(self.counters.slice(copy..copy + 1).ptr()),
                points: points as u32,
                doublings: windows.span(),
            };
            self.fold.launch(stream, &self.kernel, &params)?;
        }
        Ok(())
    }
}
