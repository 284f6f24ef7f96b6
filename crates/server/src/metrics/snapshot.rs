//! The state of the moment, as metrics.

use std::collections::BTreeMap;

use engine::scheduler::DeviceStatus;
use engine::service::Status;
use filecoin::ProofKind;

use super::exposition::Writer;
use super::{Kind, secs};
use crate::keys::{DeviceFacts, LoadedKey};
use crate::observatory::AtWork;

/// What is asked of the other parts for one answer.
pub(crate) struct Snapshot {
    pub(crate) status: Status,
    pub(crate) devices: Vec<DeviceFacts>,
    pub(crate) keys: Vec<LoadedKey>,
    pub(crate) at_work: AtWork,
    pub(crate) pinned: (u64, u64),
    pub(crate) ready: bool,
}

impl Snapshot {
    pub(super) fn write(&self, out: &mut String) {
        let mut writer = Writer(out);
        self.jobs(&mut writer);
        self.process(&mut writer);
        self.devices(&mut writer);
        self.keys(&mut writer);
    }

    fn totals(&self, pick: impl Fn(&engine::service::Totals) -> u64) -> BTreeMap<ProofKind, u64> {
        let of = |kind| self.status.totals.get(&kind).map_or(0, &pick);
        ProofKind::ALL
            .into_iter()
            .map(|kind| (kind, of(kind)))
            .collect()
    }

    fn jobs(&self, out: &mut Writer<'_>) {
        let ended = [
            (
                "completed",
                "Jobs that ended with a proof",
                self.totals(|t| t.completed),
            ),
            ("failed", "Jobs that failed", self.totals(|t| t.failed)),
            (
                "cancelled",
                "Jobs that were cancelled",
                self.totals(|t| t.cancelled),
            ),
        ];
        for (name, help, by_kind) in &ended {
            let all: u64 = by_kind.values().sum();
            let family = format!("cuzk_proofs_{name}");
            out.single(&format!("{family}_total"), "counter", help, all);
            out.family(&family, "counter", &format!("{help}, by kind"));
            for (kind, count) in by_kind {
                out.sample(&family, &[("proof_kind", Kind(*kind).label())], count);
            }
        }
        out.family("cuzk_jobs", "gauge", "Open jobs");
        let (mut pending, mut running) = (0, 0);
        for (kind, counts) in &self.status.counts {
            pending += counts.pending;
            running += counts.in_progress;
            for (state, count) in [
                ("pending", counts.pending),
                ("in_progress", counts.in_progress),
            ] {
                let labels = [("proof_kind", Kind(*kind).label()), ("state", state)];
                out.sample("cuzk_jobs", &labels, count);
            }
        }
        out.single(
            "cuzk_queue_depth",
            "gauge",
            "Jobs of which no unit has started",
            pending,
        );
        out.single(
            "cuzk_running_jobs",
            "gauge",
            "Jobs of which a unit has started",
            running,
        );
        out.family("cuzk_units_at_work", "gauge", "Units in each phase");
        let AtWork {
            preparing,
            proving,
            checking,
        } = self.at_work;
        for (phase, count) in [
            ("prepare", preparing),
            ("prove", proving),
            ("check", checking),
        ] {
            out.sample("cuzk_units_at_work", &[("phase", phase)], count);
        }
    }

    fn process(&self, out: &mut Writer<'_>) {
        let status = &self.status;
        let store_up = u8::from(status.store_error.is_none());
        let (pinned, pinned_limit) = self.pinned;
        for (name, help, value) in [
            (
                "cuzk_ready",
                "Whether the daemon is ready for work",
                u64::from(self.ready),
            ),
            (
                "cuzk_store_up",
                "Whether the store takes writes",
                u64::from(store_up),
            ),
            (
                "cuzk_memory_used_bytes",
                "Host memory held by units",
                status.memory_used,
            ),
            (
                "cuzk_memory_budget_bytes",
                "The most that units may hold",
                status.memory_budget,
            ),
            (
                "cuzk_pinned_bytes",
                "Page-locked host memory in use",
                pinned,
            ),
            (
                "cuzk_pinned_limit_bytes",
                "The most that will be page-locked",
                pinned_limit,
            ),
        ] {
            out.single(name, "gauge", help, value);
        }
        let uptime = secs(status.uptime_ms);
        out.single("cuzk_uptime_seconds", "gauge", "Since the start", uptime);
    }

    fn devices(&self, out: &mut Writer<'_>) {
        let workers = self.status.devices.len();
        out.single("cuzk_gpu_workers", "gauge", "Devices", workers);
        let labelled: Vec<(String, &str, bool, bool)> = self
            .status
            .devices
            .iter()
            .map(|(name, view)| {
                let up = view.status == DeviceStatus::Ready;
                (
                    view.id.0.to_string(),
                    name.as_str(),
                    up,
                    view.running.is_some(),
                )
            })
            .collect();
        out.family("cuzk_device_up", "gauge", "Whether the device takes units");
        for (id, name, up, _) in &labelled {
            let labels = [("device", id.as_str()), ("name", name)];
            out.sample("cuzk_device_up", &labels, u8::from(*up));
        }
        out.family(
            "cuzk_device_busy",
            "gauge",
            "Whether a unit is on the device",
        );
        for (id, _, _, busy) in &labelled {
            out.sample("cuzk_device_busy", &[("device", id)], u8::from(*busy));
        }
        for (family, help, pick) in [
            (
                "cuzk_device_memory_total_bytes",
                "Memory of the device",
                (|facts| facts.memory_total) as fn(&DeviceFacts) -> u64,
            ),
            (
                "cuzk_device_memory_free_bytes",
                "Of that, what is free",
                |facts| facts.memory_free,
            ),
        ] {
            out.family(family, "gauge", help);
            for ((id, ..), facts) in labelled.iter().zip(&self.devices) {
                out.sample(family, &[("device", id)], pick(facts));
            }
        }
    }

    fn keys(&self, out: &mut Writer<'_>) {
        out.family("cuzk_key_bytes", "gauge", "Size of the loaded keys");
        for key in &self.keys {
            let test = if key.test_key { "true" } else { "false" };
            let labels = [
                ("circuit", key.circuit.name()),
                ("tier", key.tier.label()),
                ("test_key", test),
            ];
            out.sample("cuzk_key_bytes", &labels, key.bytes);
        }
        out.family("cuzk_key_references", "gauge", "Units that use the key now");
        for key in &self.keys {
            let labels = [("circuit", key.circuit.name())];
            out.sample("cuzk_key_references", &labels, key.references);
        }
    }
}
