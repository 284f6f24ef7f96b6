//! Text format: what is written is what a scraper reads.

use std::collections::{BTreeMap, BTreeSet};

use engine::scheduler::{DeviceId, KindCounts};
use engine::service::{Status, Totals};

use super::*;
use crate::keys::{LoadedKey, Tier};
use crate::observatory::AtWork;

/// Families by name: type, and the values of their series.
type Families = BTreeMap<String, (String, BTreeMap<String, f64>)>;

/// A strict reader of text format 0.0.4: every sample follows the `TYPE` of its family, no family
/// and no series is there twice, histograms are cumulative and complete.
fn read(text: &str) -> Families {
    let mut families = Families::new();
    let mut current = String::new();
    let mut helped = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(!help.is_empty() && helped.insert(name.to_owned()), "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(helped.contains(name), "{line}");
            name.clone_into(&mut current);
            let fresh = families.insert(name.to_owned(), (kind.to_owned(), BTreeMap::new()));
            assert!(fresh.is_none(), "{line}");
        } else {
            assert!(!line.starts_with('#'), "{line}");
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let name = series.split('{').next().expect("a name");
            let (kind, samples) = families.get_mut(&current).expect("a family");
            let belongs = match kind.as_str() {
                "histogram" => ["_bucket", "_sum", "_count"]
                    .iter()
                    .any(|suffix| name.strip_suffix(suffix) == Some(&current)),
                _ => name == current,
            };
            assert!(belongs, "{line} in {current}");
            let value: f64 = value.parse().expect("a number");
            assert!(samples.insert(series.to_owned(), value).is_none(), "{line}");
        }
    }
    for (name, (kind, samples)) in &families {
        if kind == "histogram" {
            check_histogram(name, samples);
        }
    }
    families
}

fn check_histogram(name: &str, samples: &BTreeMap<String, f64>) {
    let count = format!("{name}_count");
    for (series, total) in samples.iter().filter(|(s, _)| s.starts_with(&count)) {
        let labels = series[count.len()..].trim_matches(['{', '}']);
        let of = |s: &&String| s.starts_with(&format!("{name}_bucket")) && s.contains(labels);
        let buckets: Vec<&String> = samples.keys().filter(of).collect();
        let infinite = buckets.iter().find(|s| s.contains("le=\"+Inf\""));
        assert_eq!(samples[*infinite.expect("an infinite bucket")], *total);
        assert!(samples.contains_key(&series.replace("_count", "_sum")));
        assert!(buckets.iter().all(|bucket| samples[*bucket] <= *total));
    }
}

fn snapshot() -> Snapshot {
    let counts = KindCounts {
        pending: 2,
        in_progress: 1,
    };
    let status = Status {
        uptime_ms: 1_500,
        counts: ProofKind::ALL.map(|kind| (kind, counts)).to_vec(),
        totals: [(
            ProofKind::Porep,
            Totals {
                completed: 3,
                failed: 1,
                cancelled: 0,
            },
        )]
        .into(),
        ..Status::default()
    };
    Snapshot {
        status,
        devices: Vec::new(),
        keys: vec![LoadedKey {
            circuit: "porep-32g".parse().expect("a circuit"),
            tier: Tier::Hot,
            bytes: 7,
            references: 2,
            idle_secs: 0.0,
            test_key: false,
        }],
        at_work: AtWork::default(),
        pinned: (0, 0),
        ready: true,
    }
}

#[test]
fn a_strict_reader_reads_it() {
    let metrics = Metrics::new();
    metrics.completed(ProofKind::Porep, 2_000);
    metrics.completed(ProofKind::Porep, 10_000_000);
    metrics.phase(ProofKind::Snap, Phase::Witness, 30);
    metrics.unit(DeviceId(0), UnitOutcome::Wrong);
    metrics.device_busy(DeviceId(1), 250);
    metrics.device_stopped(DeviceId(1));
    metrics.quarantined(DeviceId(1));
    metrics.refused("QUEUE_FULL");
    let families = read(&metrics.text(&snapshot()));
    let value = |family: &str, series: &str| families[family].1[series];
    let duration = "cuzk_proof_duration_seconds";
    let porep = |suffix: &str| format!("{duration}_{suffix}{{proof_kind=\"porep_c2\"}}");
    assert_eq!(value(duration, &porep("count")), 2.0);
    assert_eq!(value(duration, &porep("sum")), 10_002.0);
    // The names of the earlier daemon, with their types.
    for (name, kind, series, expected) in [
        (
            "cuzk_proofs_completed_total",
            "counter",
            "cuzk_proofs_completed_total",
            3.0,
        ),
        (
            "cuzk_proofs_failed_total",
            "counter",
            "cuzk_proofs_failed_total",
            1.0,
        ),
        ("cuzk_uptime_seconds", "gauge", "cuzk_uptime_seconds", 1.5),
        ("cuzk_queue_depth", "gauge", "cuzk_queue_depth", 8.0),
        ("cuzk_running_jobs", "gauge", "cuzk_running_jobs", 4.0),
        ("cuzk_gpu_workers", "gauge", "cuzk_gpu_workers", 0.0),
        (
            "cuzk_proofs_completed",
            "counter",
            "cuzk_proofs_completed{proof_kind=\"porep_c2\"}",
            3.0,
        ),
        (
            "cuzk_proofs_failed",
            "counter",
            "cuzk_proofs_failed{proof_kind=\"winning_post\"}",
            0.0,
        ),
    ] {
        assert_eq!(families[name].0, kind, "{name}");
        assert_eq!(value(name, series), expected, "{series}");
    }
    for (family, series) in [
        (
            "cuzk_units_total",
            "cuzk_units_total{device=\"0\",outcome=\"wrong\"}",
        ),
        (
            "cuzk_device_stops_total",
            "cuzk_device_stops_total{device=\"1\"}",
        ),
        (
            "cuzk_device_quarantines_total",
            "cuzk_device_quarantines_total{device=\"1\"}",
        ),
        (
            "cuzk_requests_refused_total",
            "cuzk_requests_refused_total{code=\"QUEUE_FULL\"}",
        ),
    ] {
        assert_eq!(value(family, series), 1.0, "{series}");
    }
    let busy = "cuzk_device_busy_seconds_total";
    assert_eq!(
        value(busy, "cuzk_device_busy_seconds_total{device=\"1\"}"),
        0.25
    );
    let key = "cuzk_key_bytes{circuit=\"porep-32g\",tier=\"hot\",test_key=\"false\"}";
    assert_eq!(value("cuzk_key_bytes", key), 7.0);
}

#[test]
fn counters_only_grow() {
    let metrics = Metrics::new();
    let before = read(&metrics.text(&snapshot()));
    for kind in ProofKind::ALL {
        metrics.completed(kind, 10);
        metrics.queue_wait(kind, 10);
    }
    let after = read(&metrics.text(&snapshot()));
    for (name, (kind, samples)) in &before {
        for (series, value) in samples.iter().filter(|_| kind != "gauge") {
            assert!(after[name].1[series] >= *value, "{series}");
        }
    }
}
