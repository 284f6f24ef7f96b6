//! Every key of the configuration file: its type, its default, and what it does. The only place
//! where a default is written; `docs/daemon.md` is printed from here.

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Text in quotes.
    Text,
    /// A whole number.
    Number,
    /// `true` or `false`.
    Flag,
    /// Text: a whole number followed by `GiB`, `MiB`, `GB`, `MB`, or bytes.
    Size,
    /// As [`Form::Size`], or `auto`.
    Budget,
    /// Text: a whole number followed by `h`, `m`, `s`, or seconds.
    Span,
    /// A list of whole numbers.
    Numbers,
    /// A list of texts.
    Texts,
}

impl Form {
    /// In words, for messages.
    pub fn words(self) -> &'static str {
        match self {
            Self::Text => "text in quotes",
            Self::Number => "a whole number that is not negative",
            Self::Flag => "true or false",
            Self::Size => "a size such as \"64GiB\", \"512MiB\", \"2GB\", \"300MB\" or bytes",
            Self::Budget => "\"auto\" or a size such as \"64GiB\"",
            Self::Span => "a duration such as \"24h\", \"5m\", \"30s\" or seconds",
            Self::Numbers => "a list of whole numbers such as [0, 1]",
            Self::Texts => "a list of texts such as [\"porep-32g\"]",
        }
    }
}

/// Whether a key does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It does, this.
    Does(&'static str),
    /// It is accepted, because files of the earlier daemon have it, and does nothing, for this
    /// reason.
    Nothing(&'static str),
}

/// A key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its table.
    pub table: &'static str,
    /// Its name in the table.
    pub name: &'static str,
    /// How its value is written.
    pub form: Form,
    /// Its default, as TOML.
    pub default: &'static str,
    /// What it does.
    pub effect: Effect,
}

impl Key {
    /// `table.name`.
    pub fn path(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }

    /// The environment variable that goes before the file.
    pub fn variable(&self) -> String {
        format!("CUZK_{}_{}", self.table, self.name).to_uppercase()
    }
}

const fn does(
    table: &'static str,
    name: &'static str,
    form: Form,
    default: &'static str,
    what: &'static str,
) -> Key {
    Key {
        table,
        name,
        form,
        default,
        effect: Effect::Does(what),
    }
}

const fn nothing(
    table: &'static str,
    name: &'static str,
    form: Form,
    default: &'static str,
    why: &'static str,
) -> Key {
    Key {
        table,
        name,
        form,
        default,
        effect: Effect::Nothing(why),
    }
}

use Form::{Budget, Flag, Number, Numbers, Size, Span, Text, Texts};

const NO_BATCHES: &str = "units of any jobs follow each other without batches";
const NO_SYNTHESIS: &str = "there is no circuit synthesis: witnesses are generated directly";
const NO_PIPELINE: &str = "a device always prepares the next unit while it proves one";
const OLD_MEMORY: &str = "one budget, memory.total_budget, covers all host memory";

/// All keys, table by table.
pub const KEYS: &[Key] = &[
    does(
        "daemon",
        "listen",
        Text,
        "\"unix:///run/curio/cuzk.sock\"",
        "gRPC address: `unix:///path` or `host:port`",
    ),
    does(
        "daemon",
        "status_listen",
        Text,
        "\"\"",
        "HTTP address of status page, metrics and health; empty for none",
    ),
    does(
        "memory",
        "total_budget",
        Budget,
        "\"auto\"",
        "host memory for units at work; `auto` is all of the machine's (or control group's) but the margin, at least half of it",
    ),
    does(
        "memory",
        "safety_margin",
        Size,
        "\"5GiB\"",
        "what `auto` leaves to others",
    ),
    nothing(
        "memory",
        "eviction_min_idle",
        Span,
        "\"5m\"",
        "keys stay while there is room; then the one not used for longest goes",
    ),
    nothing("memory", "pinned_budget", Size, "0", OLD_MEMORY),
    nothing("memory", "working_memory_budget", Size, "0", OLD_MEMORY),
    does(
        "gpus",
        "devices",
        Numbers,
        "[]",
        "GPUs to use, as the driver counts them; empty for all",
    ),
    nothing(
        "gpus",
        "gpu_threads",
        Number,
        "0",
        "no CPU threads belong to a GPU",
    ),
    nothing(
        "gpus",
        "gpu_workers_per_device",
        Number,
        "2",
        "one process serves a device and keeps it busy",
    ),
    nothing("scheduler", "max_batch_size", Number, "1", NO_BATCHES),
    nothing(
        "scheduler",
        "max_batch_wait_ms",
        Number,
        "10000",
        NO_BATCHES,
    ),
    nothing(
        "scheduler",
        "sort_by_type",
        Flag,
        "true",
        "the scheduler prefers units whose key is loaded",
    ),
    does(
        "synthesis",
        "threads",
        Number,
        "0",
        "CPU threads for vanilla checks and witnesses; 0 for all",
    ),
    nothing("synthesis", "partition_workers", Number, "0", NO_SYNTHESIS),
    nothing("pipeline", "enabled", Flag, "true", NO_PIPELINE),
    nothing("pipeline", "synthesis_lookahead", Number, "1", NO_PIPELINE),
    nothing(
        "pipeline",
        "synthesis_concurrency",
        Number,
        "1",
        NO_SYNTHESIS,
    ),
    nothing(
        "pipeline",
        "max_parallel_synthesis",
        Number,
        "18",
        NO_SYNTHESIS,
    ),
    nothing("pipeline", "slot_size", Number, "0", NO_PIPELINE),
    nothing("pipeline", "max_gpu_queue_depth", Number, "0", NO_PIPELINE),
    does(
        "srs",
        "param_cache",
        Text,
        "\"/data/zk/params\"",
        "folder of the parameter files; read only",
    ),
    does(
        "srs",
        "preload",
        Texts,
        "[]",
        "circuits whose keys are loaded at the start",
    ),
    does(
        "srs",
        "allow_test_keys",
        Flag,
        "false",
        "prove also with keys made for tests; every result says so",
    ),
    does(
        "logging",
        "level",
        Text,
        "\"info\"",
        "log filter; `RUST_LOG` goes before it",
    ),
    does("logging", "format", Text, "\"text\"", "`text` or `json`"),
    does(
        "security",
        "require_tls",
        Flag,
        "false",
        "refuse to listen beyond this host without TLS",
    ),
    does(
        "security",
        "tls_cert",
        Text,
        "\"\"",
        "PEM file of the certificate chain; with tls_key it turns TLS on",
    ),
    does(
        "security",
        "tls_key",
        Text,
        "\"\"",
        "PEM file of the certificate's private key",
    ),
    does(
        "security",
        "client_ca",
        Text,
        "\"\"",
        "PEM file of authorities: clients must show a certificate of one of them",
    ),
    does(
        "store",
        "path",
        Text,
        "\"/var/lib/cuzk\"",
        "folder of the job database and the payload files",
    ),
    does(
        "store",
        "max_age",
        Span,
        "\"24h\"",
        "how long results are kept",
    ),
    does(
        "store",
        "max_results",
        Number,
        "10000",
        "how many results are kept",
    ),
    does(
        "store",
        "max_result_bytes",
        Size,
        "\"256MiB\"",
        "how many bytes of proofs are kept",
    ),
    does(
        "limits",
        "max_jobs",
        Number,
        "10000",
        "open jobs; WinningPoSt is not counted and never refused for it",
    ),
    does(
        "limits",
        "max_payload_bytes",
        Size,
        "\"64GiB\"",
        "payload bytes of the open jobs, WinningPoSt not counted",
    ),
    does(
        "limits",
        "max_message_bytes",
        Size,
        "\"256MiB\"",
        "largest gRPC message, sent or received",
    ),
    does(
        "limits",
        "shutdown_grace",
        Span,
        "\"60s\"",
        "how long running units may go on after SIGTERM or SIGINT",
    ),
    does(
        "cache",
        "dir",
        Text,
        "\"\"",
        "folder of prepared keys and remembered checks; empty for the default of the command line",
    ),
];

/// Tables that old files have and whose keys are arbitrary.
pub const OLD_TABLES: &[(&str, &str)] = &[(
    "gpus.affinity",
    "jobs are not tied to GPUs; the scheduler keeps a key where it is loaded",
)];

/// The key with this path.
pub fn find(table: &str, name: &str) -> Option<&'static Key> {
    KEYS.iter()
        .find(|key| key.table == table && key.name == name)
}

/// All keys as a table in Markdown, as `docs/daemon.md` has it.
pub fn markdown() -> String {
    let mut text = "| key | type | default | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for key in KEYS {
        let form = match key.form {
            Form::Text => "text",
            Form::Number => "number",
            Form::Flag => "flag",
            Form::Size => "size",
            Form::Budget => "size or `auto`",
            Form::Span => "duration",
            Form::Numbers => "numbers",
            Form::Texts => "texts",
        };
        let meaning = match key.effect {
            Effect::Does(what) => what.to_owned(),
            Effect::Nothing(why) => format!("no effect: {why}"),
        };
        let (path, default) = (key.path(), key.default);
        text.push_str(&format!(
            "| `{path}` | {form} | `{default}` | {meaning} |\n"
        ));
    }
    text
}
