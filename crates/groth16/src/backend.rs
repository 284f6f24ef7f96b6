//! What a device does for a proof: from a witness to five sums.

use std::fmt;
use std::time::{Duration, Instant};

use blstrs::{G1Projective, G2Projective};
use r1cs::{CompiledCircuit, PackedWitness};

use crate::key::{KeyError, ProvingKey};

/// A device that computes a proof's sums.
pub trait Backend: Send + Sync {
    /// What the work runs on.
    fn device(&self) -> DeviceInfo;

    /// The five sums of a proof, with the time that each phase took.
    ///
    /// The witness is not checked: sums over one that breaks the circuit make a proof that
    /// does not verify, which [`prove`](crate::prove) notices.
    ///
    /// # Errors
    /// Parts that do not belong together, points that cannot be read, a device that fails.
    fn sums(
        &self,
        circuit: &CompiledCircuit,
        key: &ProvingKey,
        witness: &PackedWitness,
    ) -> Result<(GroupSums, PhaseTimes), BackendError>;
}

/// The sums over a key, before blinding. The two forms of a key ([`KeyForm`](crate::key::KeyForm))
/// share out `l` and `h` differently; their sum, which is all that a proof holds, is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSums {
    /// Σ w_j·[u_j(τ)]₁ over all variables.
    pub a: G1Projective,
    /// Σ w_j·[v_j(τ)]₁ over all variables.
    pub b_g1: G1Projective,
    /// Σ w_j·[v_j(τ)]₂ over all variables.
    pub b_g2: G2Projective,
    /// Σ w_j·l_j over the auxiliary variables; of a prepared key over all variables.
    pub l: G1Projective,
    /// [H(τ)·Z(τ)/δ]₁ = Σ H_i·h_i; of a prepared key Σ Q_i·e_i, with the values Q_i of A·B on the
    /// coset.
    pub h: G1Projective,
}

/// What a backend runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Which sort of device.
    pub kind: DeviceKind,
    /// In words, for people: "2 threads, portable arithmetic".
    pub description: String,
    /// What tells a graphics processor from others of its kind: `GPU-` and its UUID.
    pub uuid: Option<String>,
}

/// Sorts of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The processor.
    Cpu,
    /// A graphics processor.
    Gpu,
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            DeviceKind::Cpu => "CPU",
            DeviceKind::Gpu => "GPU",
        };
        write!(f, "{kind}: {}", self.description)
    }
}

/// Wall-clock times of a proof's phases, in the order in which they ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes {
    phases: Vec<(&'static str, Duration)>,
    spans: Vec<PhaseSpan>,
}

/// When a device worked on a phase, in nanoseconds since an instant that its backend names: the same
/// for all proofs of the backend, so that overlapping ones can be laid over each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseSpan {
    /// The phase.
    pub name: &'static str,
    /// When the device came to it.
    pub start_ns: u64,
    /// When it was done.
    pub end_ns: u64,
}

impl PhaseTimes {
    /// Runs `work` and records its time under `phase`.
    pub fn measure<T>(&mut self, phase: &'static str, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.phases.push((phase, start.elapsed()));
        result
    }

    /// Adds a phase that was timed elsewhere: by the device itself.
    pub fn record(&mut self, phase: &'static str, time: Duration) {
        self.phases.push((phase, time));
    }

    /// Says when the device worked on a phase; its time is recorded besides.
    pub fn record_span(&mut self, span: PhaseSpan) {
        self.spans.push(span);
    }

    /// When the device worked on the phases, of a backend that knows; a phase may have several.
    pub fn spans(&self) -> &[PhaseSpan] {
        &self.spans
    }

    /// Adds the phases and spans of `other`, which came later.
    pub fn append(&mut self, other: PhaseTimes) {
        self.phases.extend(other.phases);
        self.spans.extend(other.spans);
    }

    /// Name and time of each phase.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, Duration)> + '_ {
        self.phases.iter().copied()
    }

    /// All phases together.
    pub fn total(&self) -> Duration {
        self.phases.iter().map(|(_, time)| time).sum()
    }
}

/// Why a backend has no sums to give.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The key's points cannot be read.
    #[error(transparent)]
    Key(#[from] KeyError),

    /// The circuit cannot be evaluated on this witness.
    #[error(transparent)]
    Circuit(#[from] r1cs::Error),

    /// The key was made for another circuit.
    #[error(
        "the key's section {section} holds {found} points, the circuit needs {expected}: the key belongs to another circuit. Use the parameter file that is named after this one"
    )]
    OtherCircuit {
        /// The section of the parameter file.
        section: &'static str,
        /// Points in it.
        found: usize,
        /// Points that the circuit needs.
        expected: usize,
    },

    /// No transform of this size exists.
    #[error(
        "{size} is not a domain's size: it must be a power of two up to 2^31. The circuit is too large for this field"
    )]
    DomainSize {
        /// The size asked for.
        size: usize,
    },

    /// Work that would take the processor hours.
    #[error(
        "{work}, of size 2^{log_size}, is for a GPU: the CPU does up to 2^{limit}. Run it where there is one (--device gpu)"
    )]
    NeedsGpu {
        /// What is too much.
        work: &'static str,
        /// log₂ of its size.
        log_size: u32,
        /// log₂ of the most that the processor does.
        limit: u32,
    },

    /// The threads could not be started.
    #[error(
        "cannot start {threads} threads: {reason}. Ask for fewer, or raise the limit on processes"
    )]
    Threads {
        /// Threads asked for.
        threads: usize,
        /// What the operating system said.
        reason: String,
    },

    /// The device refuses or fails.
    #[error("{source}")]
    Device {
        /// What it says, and what to do about it.
        source: Box<dyn std::error::Error + Send + Sync>,
        /// Whether this process can use the device no more; otherwise the next proof may succeed.
        fatal: bool,
    },
}
