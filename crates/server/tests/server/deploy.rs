//! The files under `deploy/` use metrics that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::{daemon, on_wire, quick};
use server::proto::v1;

/// Names that begin with `cuzk_`, as they occur in a text.
fn names(text: &str) -> BTreeSet<String> {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let words = text.split(ends).filter(|word| word.starts_with("cuzk_"));
    words.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_of_dashboard_and_alerts_is_exported() {
    let daemon = daemon(quick());
    let mut calls = daemon.connect().await;
    // Series with labels appear with their first event.
    let circuit_id = "porep-2k".to_owned();
    calls
        .preload_srs(v1::PreloadSrsRequest { circuit_id })
        .await
        .unwrap();
    let submit = Some(on_wire("porep", "a"));
    calls.prove(v1::ProveRequest { submit }).await.unwrap();
    let mut wrong = on_wire("porep", "b");
    wrong.vanilla_proof.clear();
    let submit = Some(wrong);
    calls.prove(v1::ProveRequest { submit }).await.unwrap();
    let text = String::from_utf8(daemon.get("/metrics").unwrap()).unwrap();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let exported: BTreeSet<String> = samples
        .flat_map(|line| names(line).into_iter().take(1))
        .collect();
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    for file in ["prometheus/alerts.yml", "grafana/cuzk.json"] {
        let used = names(&fs::read_to_string(deploy.join(file)).unwrap());
        assert!(used.len() > 5, "{file}: {used:?}");
        let missing: Vec<_> = used.difference(&exported).collect();
        assert!(
            missing.is_empty(),
            "{file} uses {missing:?}, which are not exported"
        );
    }
}
