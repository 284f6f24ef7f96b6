//! The process that owns one device, and how the daemon talks to it.
//!
//! ```text
//!   daemon                                  worker process
//!   ┌────────────────┐   frames, stdin     ┌──────────────┐
//!   │ WorkerProcess  │ ──────────────────▶ │ serve()      │
//!   │ (engine::Device)│ ◀────────────────── │  + a Prover  │
//!   └────────────────┘   frames, stdout    └──────────────┘
//!                     ◀── stderr: its log ──
//! ```
//!
//! [`frame`] and [`message`] are the protocol. [`WorkerProcess`] is the daemon's end: it starts the
//! process, feeds it, watches it and replaces what it says by calls of `engine`. [`serve`] is the
//! worker's end, over any [`Prover`]; [`CircuitProver`] is the real one, over a
//! [`groth16::Backend`]. [`ProofJudge`] checks in the daemon what workers hand over.
//!
//! A device's driver may poison or hang its process; nothing that happens in a worker can take the
//! daemon with it, and a worker whose daemon is gone ends by itself.

#![forbid(unsafe_code)]

mod at_work;
mod error;
pub mod frame;
mod judge;
mod keys;
mod life;
mod log;
pub mod message;
mod process;
mod prover;
mod pulse;
mod questions;
mod requests;
mod serve;

pub use error::Error;
pub use judge::ProofJudge;
pub use keys::{KeyLimits, KeyRing};
pub use pipeline::{packed_bytes, unit_bytes};
pub use process::{Nobody, Watcher, WorkerProcess, WorkerSpec};
pub use prover::{CircuitProver, DeviceMemory, OnDevice};
pub use pulse::Pulse;
pub use serve::{End, Prover, Served, UnitError, serve};
