//! What every launch of a fold kernel needs.

use super::curve::SumCurve;
use super::params::FoldScratch;
use super::rounds::{FOLD_THREADS, FoldGrid};
use crate::device::{Arena, DeviceSlice, Kernel, Ledger, Lifetime, Params, Slot, Stream};
use crate::error::Result;

/// Buffers in which the fold kernels keep products and exceptional pairs between their passes.
#[derive(Clone, Copy, Debug)]
pub struct FoldSlots {
    grid: FoldGrid,
    products: Slot<[u32; 4]>,
    deferred: Slot<u32>,
}

impl FoldSlots {
    /// For rounds of up to `pairs` pairs.
    pub fn reserve<C: SumCurve>(
        name: &str,
        pairs: u64,
        multiprocessors: u32,
        ledger: &mut Ledger,
        work: Lifetime,
    ) -> Self {
        let grid = FoldGrid::new(pairs, multiprocessors, C::FOLD_BLOCKS);
        let remembered = if pairs == 0 { 0 } else { grid.remembered() };
        let parts = size_of::<C::Affine>() / 32;
        FoldSlots {
            grid,
            products: ledger.reserve(format!("{name}: products"), remembered * parts, work),
            deferred: ledger.reserve(format!("{name}: exceptional pairs"), remembered, work),
        }
    }

    /// The buffers.
    pub fn in_arena<C: SumCurve>(&self, arena: &Arena) -> Fold {
        Fold {
            grid: self.grid,
            // Two points and a product for each thread, FOLD_SHARED_BYTES.
            shared_bytes: FOLD_THREADS * 5 * size_of::<C::Affine>() as u32 / 2,
            products: arena.get(self.products),
            deferred: arena.get(self.deferred),
        }
    }
}

/// The launches of fold kernels.
#[derive(Clone, Copy, Debug)]
pub struct Fold {
    grid: FoldGrid,
    shared_bytes: u32,
    products: DeviceSlice<[u32; 4]>,
    deferred: DeviceSlice<u32>,
}

impl Fold {
    /// The kernels' parameter. `chunks` is the address of a counter that is zero.
    pub fn scratch(&self, chunks: u64) -> FoldScratch {
        FoldScratch {
            products: self.products.ptr(),
            deferred: self.deferred.ptr(),
            chunks,
            batch: self.grid.batch,
            multiprocessors: self.grid.multiprocessors,
        }
    }

    /// Launches a fold kernel on the whole device.
    pub fn launch<P: Params>(&self, stream: &Stream, kernel: &Kernel, params: &P) -> Result<()> {
        self.launch_blocks(stream, kernel, params, self.grid.blocks())
    }

    /// Launches a fold kernel for a round that will hardly have anything to do: with one block a
    /// multiprocessor, which costs half of an empty launch with four.
    pub fn launch_thin<P: Params>(
        &self,
        stream: &Stream,
        kernel: &Kernel,
        params: &P,
    ) -> Result<()> {
        self.launch_blocks(stream, kernel, params, self.grid.multiprocessors)
    }

    fn launch_blocks<P: Params>(
        &self,
        stream: &Stream,
        kernel: &Kernel,
        params: &P,
        blocks: u32,
    ) -> Result<()> {
        stream.launch(kernel, blocks, FOLD_THREADS, self.shared_bytes, params)
    }
}
