//! Units on their way from a request to a verified proof, several at a time, each in another stage.
//!
//! ```text
//!            prepare                    sums                  finish
//! units ──▶ decode, check, witness ──▶ the device ──▶ assemble, verify ──▶ Work::ended
//!           threads of low priority    as many units as      off the device's
//!                                      it has memory for     path
//! ```
//!
//! In the steady state the slowest stage works all the time, and a unit takes as long as that stage.
//! [`Pipeline`] holds the units and says which is next in which stage; its threads are the caller's,
//! each of which [attends](Pipeline::attend) to one stage. What a stage does is [`Work`]. The one
//! for circuits is in [`Statement`], [`sums`] and [`finish`], so that a proof is made in
//! the same way by a command, by a benchmark and by a worker.
//!
//! How far units may pile up between stages is bounded, by number and by bytes ([`Limits`]).

#![forbid(unsafe_code)]

mod circuit;
mod line;
mod memory;
mod pools;
mod run;
mod spans;

#[cfg(test)]
mod tests;

pub use circuit::{CircuitKey, Error, Statement, finish, sums};
pub use memory::{packed_bytes, unit_bytes};
pub use pools::Pools;
pub use run::{Limits, Pipeline, Role, Work};
pub use spans::{Lane, Span, Spans, covered};
