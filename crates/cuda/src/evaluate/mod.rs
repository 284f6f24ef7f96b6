//! A·w and B·w on the device, straight from a compiled circuit, and what the queries take from
//! a witness.
//!
//! A [`Program`] is a circuit as the device reads it; [`Evaluator`] runs it. [`WitnessBuffers`] holds
//! a packed witness; [`QueryTail`] lists the terms of a query whose values are no bits.
//!
//! # Bounds
//!
//! On an H200 (memset 4.58 TB/s, 7.7·10^12 IMAD.WIDE a second):
//!
//! * A bit circuit is bound by what it writes: porep-32g's two vectors of 2^27 elements are
//!   8.59 GB, 1.88 ms; program, bits and arguments, 44 MB, stay in the L2 cache. Measured: 2.84 ms
//!   in all, of which short rows 2.24, packed sums 0.33, rows of products 0.20.
//! * A Poseidon circuit is bound by its products of 64 multiply-adds each: 7.8·10^8 of wpost-32g,
//!   6.5 ms; its vectors, and the values that it copies, take 3.3 ms of memory traffic. Measured:
//!   rows of products 10.3 ms, short rows and copies 3.7, 14.2 in all.

mod bitmap;
#[cfg(test)]
mod device_tests;
mod digits;
mod error;
mod evaluator;
#[cfg(test)]
mod interpreter;
mod launch;
mod measure;
mod program;
mod query;
mod rows;
mod source;
#[cfg(test)]
mod tests;
mod witness;

pub use bitmap::DeviceBitmap;
pub(crate) use bitmap::{BitmapSlots, ranks};
pub use error::ProgramError;
pub use evaluator::{Evaluator, EvaluatorPlan, Step};
pub use measure::measure;
pub use program::Program;
pub use query::{Query, QueryPlan, QueryTail};
pub use witness::{WitnessBuffers, WitnessPlan};
