//! The metrics: counted as things happen, completed with the state of the moment when asked for.

mod exposition;
mod snapshot;

use std::fmt;

use engine::scheduler::{DeviceId, Millis};
use filecoin::ProofKind;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

pub(crate) use snapshot::Snapshot;

/// A part of a unit's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// Loading the key.
    Load,
    /// Vanilla check and witness.
    Witness,
    /// On the device.
    Device,
    /// The daemon's own check of the proof.
    Check,
}

impl EncodeLabelValue for Phase {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        let label = match self {
            Self::Load => "load",
            Self::Witness => "witness",
            Self::Device => "device",
            Self::Check => "check",
        };
        EncodeLabelValue::encode(&label, encoder)
    }
}

/// How a unit's time on a device ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum UnitOutcome {
    /// With a proof that verifies.
    Proven,
    /// With one that does not.
    Wrong,
    /// With one that could not be checked.
    Unchecked,
    /// The request is at fault.
    Refused,
    /// The try failed.
    Failed,
    /// The device's process was lost.
    DeviceLost,
    /// Nobody wanted it any more.
    Dropped,
}

impl EncodeLabelValue for UnitOutcome {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        let label = match self {
            Self::Proven => "proven",
            Self::Wrong => "wrong",
            Self::Unchecked => "unchecked",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::DeviceLost => "device_lost",
            Self::Dropped => "dropped",
        };
        EncodeLabelValue::encode(&label, encoder)
    }
}

/// A kind as label value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Kind(pub(crate) ProofKind);

impl Kind {
    pub(crate) fn label(self) -> &'static str {
        match self.0 {
            ProofKind::Porep => "porep_c2",
            ProofKind::Snap => "snap_update",
            ProofKind::Window => "window_post",
            ProofKind::Winning => "winning_post",
        }
    }
}

impl EncodeLabelValue for Kind {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.label(), encoder)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    proof_kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPhase {
    proof_kind: Kind,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfDevice {
    device: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfUnit {
    device: u32,
    outcome: UnitOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCode {
    code: String,
}

/// 10 ms to 87 minutes, in factors of 2.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 2.0, 20))
}

type Seconds = Counter<f64, AtomicU64>;

/// All that is counted.
pub(crate) struct Metrics {
    registry: Registry,
    duration: Family<OfKind, Histogram>,
    queue_wait: Family<OfKind, Histogram>,
    phase: Family<OfPhase, Histogram>,
    units: Family<OfUnit, Counter>,
    busy: Family<OfDevice, Seconds>,
    restarts: Family<OfDevice, Counter>,
    quarantines: Family<OfDevice, Counter>,
    refused: Family<OfCode, Counter>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let metrics = Self {
            duration: Family::new_with_constructor(seconds),
            queue_wait: Family::new_with_constructor(seconds),
            phase: Family::new_with_constructor(seconds),
            units: Family::default(),
            busy: Family::default(),
            restarts: Family::default(),
            quarantines: Family::default(),
            refused: Family::default(),
            registry: Registry::default(),
        };
        let m = &metrics;
        registry.register(
            "cuzk_proof_duration_seconds",
            "From acceptance of a job to its proof",
            m.duration.clone(),
        );
        registry.register(
            "cuzk_queue_wait_seconds",
            "From acceptance of a job to the start of its first unit",
            m.queue_wait.clone(),
        );
        registry.register(
            "cuzk_unit_phase_seconds",
            "What the phases of a unit take",
            m.phase.clone(),
        );
        registry.register(
            "cuzk_units",
            "Units that devices were given, by how they ended",
            m.units.clone(),
        );
        registry.register(
            "cuzk_device_busy_seconds",
            "Time in which a unit or more was on the device",
            m.busy.clone(),
        );
        registry.register(
            "cuzk_device_stops",
            "Ends of devices' processes",
            m.restarts.clone(),
        );
        registry.register(
            "cuzk_device_quarantines",
            "Times that a device was taken out of service",
            m.quarantines.clone(),
        );
        registry.register(
            "cuzk_requests_refused",
            "Requests that did not become jobs, by error code",
            m.refused.clone(),
        );
        // So that every series is there from the start.
        for kind in ProofKind::ALL.map(Kind) {
            let labels = OfKind { proof_kind: kind };
            drop(metrics.duration.get_or_create(&labels));
            drop(metrics.queue_wait.get_or_create(&labels));
        }
        Self {
            registry,
            ..metrics
        }
    }

    pub(crate) fn completed(&self, kind: ProofKind, ms: Millis) {
        let labels = OfKind {
            proof_kind: Kind(kind),
        };
        self.duration.get_or_create(&labels).observe(secs(ms));
    }

    pub(crate) fn queue_wait(&self, kind: ProofKind, ms: Millis) {
        let labels = OfKind {
            proof_kind: Kind(kind),
        };
        self.queue_wait.get_or_create(&labels).observe(secs(ms));
    }

    pub(crate) fn phase(&self, kind: ProofKind, phase: Phase, ms: Millis) {
        let labels = OfPhase {
            proof_kind: Kind(kind),
            phase,
        };
        self.phase.get_or_create(&labels).observe(secs(ms));
    }

    pub(crate) fn unit(&self, device: DeviceId, outcome: UnitOutcome) {
        let device = device.0;
        self.units.get_or_create(&OfUnit { device, outcome }).inc();
    }

    pub(crate) fn device_busy(&self, device: DeviceId, ms: Millis) {
        let labels = OfDevice { device: device.0 };
        self.busy.get_or_create(&labels).inc_by(secs(ms));
    }

    #[cfg(test)]
    pub(crate) fn busy_seconds(&self, device: DeviceId) -> f64 {
        let labels = OfDevice { device: device.0 };
        self.busy.get_or_create(&labels).get()
    }

    pub(crate) fn device_stopped(&self, device: DeviceId) {
        let labels = OfDevice { device: device.0 };
        self.restarts.get_or_create(&labels).inc();
    }

    pub(crate) fn quarantined(&self, device: DeviceId) {
        let labels = OfDevice { device: device.0 };
        self.quarantines.get_or_create(&labels).inc();
    }

    pub(crate) fn refused(&self, code: &str) {
        let code = code.to_owned();
        self.refused.get_or_create(&OfCode { code }).inc();
    }

    /// Everything in text format 0.0.4, with the state of the moment.
    pub(crate) fn text(&self, snapshot: &Snapshot) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        let mut out = exposition::plain(&text);
        snapshot.write(&mut out);
        out
    }
}

/// Seconds of milliseconds.
#[allow(
    clippy::cast_precision_loss,
    reason = "spans in milliseconds fit 53 bits"
)]
fn secs(ms: Millis) -> f64 {
    ms as f64 / 1000.0
}

#[cfg(test)]
mod tests;
