//! The file, the environment and the defaults together.

use std::collections::BTreeMap;

use super::keys::{Effect, KEYS};
use super::*;

fn parse(text: &str) -> Result<Config, Error> {
    Config::parse(Path::new("a.toml"), text, |_| None)
}

/// Every key of the earlier daemon with its default, as its documentation has them.
const OLD_FILE: &str = r#"
[daemon]
listen = "unix:///run/curio/cuzk.sock"
status_listen = ""
[memory]
total_budget = "auto"
safety_margin = "5GiB"
eviction_min_idle = "5m"
pinned_budget = "50GiB"
working_memory_budget = "80GiB"
[gpus]
devices = []
gpu_threads = 0
gpu_workers_per_device = 2
[gpus.affinity]
0 = [1, 2]
[scheduler]
max_batch_size = 1
max_batch_wait_ms = 10000
sort_by_type = true
[synthesis]
threads = 0
partition_workers = 20
[pipeline]
enabled = true
synthesis_lookahead = 1
synthesis_concurrency = 1
max_parallel_synthesis = 18
slot_size = 0
max_gpu_queue_depth = 0
[srs]
param_cache = "/data/zk/params"
preload = ["porep-32g"]
[logging]
level = "info"
format = "json"
"#;

#[test]
fn an_old_file_loads_and_its_idle_keys_are_named() {
    let config = parse(OLD_FILE).unwrap();
    let keys: Vec<String> = config
        .warnings
        .iter()
        .map(|warning| match warning {
            Warning::Meaningless { key, .. } => key.clone(),
            Warning::Unknown { key } => panic!("{key}"),
        })
        .collect();
    let idle = KEYS
        .iter()
        .filter(|key| matches!(key.effect, Effect::Nothing(_)))
        .map(keys::Key::path)
        .chain(["gpus.affinity".to_owned()]);
    let (mut keys, mut idle): (Vec<_>, Vec<_>) = (keys, idle.collect());
    keys.sort();
    idle.sort();
    assert_eq!(keys, idle);
    assert_eq!(config.srs.preload[0].name(), "porep-32g");
    assert_eq!(config.logging.format, LogFormat::Json);
}

#[test]
fn an_empty_file_means_the_defaults() {
    let config = Config::default();
    assert_eq!(
        config.daemon.listen,
        Address::Unix("/run/curio/cuzk.sock".into())
    );
    assert_eq!(config.daemon.status_listen, None);
    assert_eq!(config.memory.total_budget, Budget::Auto);
    assert_eq!(config.memory.safety_margin, 5 << 30);
    assert_eq!(config.limits.max_message_bytes, 256 << 20);
    assert_eq!(config.store.max_age, Duration::from_secs(24 * 3600));
    assert!(config.warnings.is_empty() && !config.srs.allow_test_keys);
    // The engine's own defaults are the same ones.
    let (ours, theirs) = (config.engine(8 << 30), engine::service::Settings::default());
    assert_eq!(ours.scheduler, theirs.scheduler);
    assert_eq!(ours.retention, theirs.retention);
}

/// The table of keys written out as a file says what the defaults say, and nothing is unknown.
#[test]
fn the_documented_defaults_are_the_real_ones() {
    let mut tables: BTreeMap<&str, String> = BTreeMap::new();
    for key in KEYS {
        let line = format!("{} = {}\n", key.name, key.default);
        tables.entry(key.table).or_default().push_str(&line);
    }
    let file: String = tables
        .iter()
        .map(|(table, lines)| format!("[{table}]\n{lines}"))
        .collect();
    let mut config = parse(&file).unwrap();
    assert!(!config.warnings.iter().any(Warning::is_unknown));
    config.warnings.clear();
    assert_eq!(config, Config::default());
}

#[test]
fn unknown_keys_are_named() {
    let config = parse("colour = 1\n[srs]\nallow_testkeys = true\n[sever]\nx = 1\n").unwrap();
    let told: Vec<String> = config.warnings.iter().map(Warning::to_string).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.contains(&"unknown key srs.allow_testkeys is ignored".to_owned()));
    assert!(config.warnings.iter().all(Warning::is_unknown));
}

#[test]
fn wrong_values_name_file_key_and_remedy() {
    for (text, parts) in [
        (
            "[memory]\ntotal_budget = \"lots\"",
            ["memory.total_budget", "\"lots\"", "auto"],
        ),
        (
            "[memory]\neviction_min_idle = \"5 min\"",
            ["memory.eviction_min_idle", "5 min", "24h"],
        ),
        (
            "[memory]\npinned_budget = \"x\"",
            ["memory.pinned_budget", "x", "64GiB"],
        ),
        (
            "[gpus]\ndevices = [-1]",
            ["gpus.devices", "-1", "list of whole numbers"],
        ),
        (
            "[gpus]\ndevices = 0",
            ["gpus.devices", "0", "list of whole numbers"],
        ),
        (
            "[srs]\npreload = [\"porep-33g\"]",
            ["srs.preload", "porep-33g", "circuit list"],
        ),
        (
            "[srs]\nallow_test_keys = \"yes\"",
            ["srs.allow_test_keys", "yes", "true or false"],
        ),
        (
            "[daemon]\nlisten = \"9820\"",
            ["daemon.listen", "9820", "host:port"],
        ),
        ("[daemon]\nlisten = 9820", ["daemon.listen", "9820", "text"]),
        (
            "[logging]\nformat = \"xml\"",
            ["logging.format", "xml", "json"],
        ),
        (
            "[limits]\nmax_jobs = -1",
            ["limits.max_jobs", "-1", "not negative"],
        ),
        (
            "[synthesis]\nthreads = 5000000000",
            ["synthesis.threads", "5000000000", "number"],
        ),
        (
            "[security]\ntls_cert = \"/c\"",
            ["security.tls_key", "missing", "tls_cert"],
        ),
        (
            "[security]\nclient_ca = \"/c\"",
            ["security.tls_cert", "missing", "tls_key"],
        ),
        ("[srs", ["a.toml", "TOML", "line 1"]),
    ] {
        let message = parse(text).unwrap_err().to_string();
        assert!(message.contains("a.toml"), "{message}");
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in {message:?}");
        }
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn the_environment_goes_before_the_file() {
    let environment = |name: &str| {
        let value = match name {
            "CUZK_DAEMON_LISTEN" => "0.0.0.0:1",
            "CUZK_GPUS_DEVICES" => "2, 0",
            "CUZK_SRS_ALLOW_TEST_KEYS" => "true",
            "CUZK_SRS_PRELOAD" => "",
            "CUZK_LIMITS_MAX_JOBS" => "7",
            "CUZK_MEMORY_TOTAL_BUDGET" => "3GiB",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let file = "[daemon]\nlisten = \"unix:///x\"\n[srs]\npreload = [\"snap-2k\"]\n";
    let config = Config::parse(Path::new("a.toml"), file, environment).unwrap();
    assert_eq!(config.daemon.listen.to_string(), "0.0.0.0:1");
    assert_eq!(config.gpus.devices, [2, 0]);
    assert!(config.srs.allow_test_keys && config.srs.preload.is_empty());
    assert_eq!(config.limits.max_jobs, 7);
    assert_eq!(config.memory.budget_bytes(), 3 << 30);
    let wrong = Config::parse(Path::new("a.toml"), "", |name| {
        (name == "CUZK_LIMITS_MAX_JOBS").then(|| "many".to_owned())
    });
    let message = wrong.unwrap_err().to_string();
    assert!(
        message.contains("CUZK_LIMITS_MAX_JOBS") && message.contains("many"),
        "{message}"
    );
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let error = Config::load(Some(Path::new("/nonexistent/cuzk.toml"))).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/cuzk.toml"));
}

/// `docs/daemon.md` has the table that the code prints. After a change, run this test with
/// `UPDATE_DOCS=1`.
#[test]
fn the_documentation_lists_every_key() {
    const BEGIN: &str = "<!-- keys: printed by the code -->\n";
    const END: &str = "<!-- end of keys -->\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/daemon.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let text = format!("{before}{BEGIN}{}{END}{after}", keys::markdown());
        std::fs::write(&path, text).unwrap();
    } else {
        assert_eq!(table, keys::markdown());
    }
}
