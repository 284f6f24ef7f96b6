//! The kernels' parameters, field by field as in `kernels/msm`. Addresses are device addresses.

use crate::device::{Params, Pod};

/// `DigitWindow`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigitWindow {
    pub bit: u32,
    pub width: u32,
    pub first_key: u32,
    pub zero_key: u32,
    pub first_point: u32,
    pub slot: u32,
}

/// `NO_SLOT`: the window's digits are not wanted now.
pub const NO_SLOT: u32 = u32::MAX;

/// `DigitsParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Digits {
    pub scalars: u64,
    pub scalar_indices: u64,
    pub point_indices: u64,
    pub windows: u64,
    pub keys: u64,
    pub values: u64,
    pub terms: u32,
    pub window_count: u32,
    pub halves: [u32; 9],
    pub padding: u32,
}

/// `BucketRangesParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BucketRanges {
    pub keys: u64,
    pub first: u64,
    pub last: u64,
    pub entries: u32,
    pub buckets: u32,
}

/// `SelectParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Select {
    pub ones: u64,
    pub mask: u64,
    pub ranks: u64,
    pub indices: u64,
    pub count: u64,
    pub words: u32,
    pub first_point: u32,
}

/// `PairListsParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PairLists {
    pub keys: u64,
    pub values: u64,
    pub first: u64,
    pub last: u64,
    pub first_left: u64,
    pub first_right: u64,
    pub first_out: u64,
    pub left: u64,
    pub right: u64,
    pub counts: u64,
    pub entries: u32,
    pub buckets: u32,
    pub starts: [u32; super::rounds::MAX_ROUNDS],
}

/// `CopySinglesParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CopySingles {
    pub bases: u64,
    pub slots: u64,
    pub values: u64,
    pub first: u64,
    pub last: u64,
    pub buckets: u32,
    pub padding: u32,
}

/// `FoldScratch`, with its `Schedule`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FoldScratch {
    pub products: u64,
    pub deferred: u64,
    pub chunks: u64,
    pub batch: u32,
    pub multiprocessors: u32,
}

/// `FoldBasesParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FoldBases {
    pub source: u64,
    pub result: u64,
    pub left: u64,
    pub right: u64,
    pub out: u64,
    pub scratch: FoldScratch,
    pub pairs: u64,
}

/// `FoldSlotsParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FoldSlots {
    pub source: u64,
    pub result: u64,
    pub left: u64,
    pub right: u64,
    pub scratch: FoldScratch,
    pub pairs: u64,
}

/// `Grid`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    pub blocks: u32,
    pub row_bits: u32,
    pub column_bits: u32,
}

impl Grid {
    /// Buckets of all blocks.
    pub fn buckets(&self) -> u32 {
        self.blocks << (self.row_bits + self.column_bits)
    }

    /// Rows of all blocks.
    pub fn rows(&self) -> u32 {
        self.blocks << self.row_bits
    }

    /// Columns, each block's counted.
    pub fn columns(&self) -> u32 {
        self.blocks << self.column_bits
    }
}

/// `FoldBucketsParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FoldBuckets {
    pub source: u64,
    pub result: u64,
    pub first: u64,
    pub infinity: u32,
    pub grid: Grid,
    pub rows_at: u32,
    pub columns_at: u32,
    pub scratch: FoldScratch,
}

/// `FoldGridParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FoldGrid {
    pub source: u64,
    pub result: u64,
    pub grid: Grid,
    pub round: u32,
    pub scratch: FoldScratch,
}

/// `FoldChosenParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FoldChosen {
    pub bases: u64,
    pub indices: u64,
    pub points: u64,
    pub scratch: FoldScratch,
    pub count: u64,
    pub round: u32,
    pub padding: u32,
}

/// `SumLinesParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SumLines {
    pub points: u64,
    pub row_sums: u64,
    pub column_sums: u64,
    pub grid: Grid,
    pub rounds: u32,
    pub lanes: u32,
    pub padding: u32,
}

/// `BucketSet`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketSet {
    pub first_row: u32,
    pub row_bits: u32,
    pub first_column: u32,
    pub column_bits: u32,
    pub block_bits: u32,
}

/// `SumBitsParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SumBits {
    pub row_sums: u64,
    pub column_sums: u64,
    pub sets: u64,
    pub sums: u64,
    pub sums_per_set: u32,
    pub parts: u32,
}

/// `SumPointsParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SumPoints {
    pub points: u64,
    pub sums: u64,
    pub count: u64,
    pub rounds: u32,
    pub padding: u32,
}

/// `MultiplesParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Multiples {
    pub source: u64,
    pub result: u64,
    pub scratch: FoldScratch,
    pub points: u32,
    pub doublings: u32,
}

/// `ReducePointsParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ReducePoints {
    pub points: u64,
    pub count: u32,
    pub padding: u32,
}

macro_rules! params {
    ($($type:ty),* $(,)?) => {
        $(
            // SAFETY: `repr(C)`, of integers, in the order of the C++ struct that it is named after.
            unsafe impl Params for $type {}
        )*
    };
}

params!(
    Digits,
    BucketRanges,
    Select,
    PairLists,
    CopySingles,
    FoldBases,
    FoldSlots,
    FoldBuckets,
    FoldGrid,
    FoldChosen,
    SumLines,
    SumBits,
    SumPoints,
    Multiples,
    ReducePoints,
);

// SAFETY: `repr(C)`, of `u32` alone.
unsafe impl Pod for DigitWindow {}
// SAFETY: as above.
unsafe impl Pod for BucketSet {}
