//! A·w and B·w on the device, straight from a compiled circuit, and what the queries take from
//! a witness.
//!
//! A [`Program`] is a circuit as the device reads it; [`Evaluator`] runs it. [`WitnessBuffers`] holds
//! a packed witness; [`QueryTail`] lists the terms of a query whose values are no bits.

mod bitmap;
#[cfg(test)]
mod device_tests;
mod digits;
mod error;
mod evaluator;
#[cfg(test)]
mod interpreter;
mod launch;
mod program;
mod query;
mod rows;
mod source;
#[cfg(test)]
mod tests;
mod witness;

pub use bitmap::DeviceBitmap;
pub use error::ProgramError;
pub use evaluator::{Evaluator, EvaluatorPlan, Step};
pub use program::Program;
pub use query::{Query, QueryPlan, QueryTail};
pub use witness::{WitnessBuffers, WitnessPlan};
