//! The daemon's configuration: a TOML file, then environment variables, which go before it.
//!
//! Files of the earlier daemon load as they are. Keys that do nothing here and keys that nobody
//! knows are told as warnings; a value of the wrong form is an error.

mod budget;
pub mod keys;
mod read;
mod values;

use std::path::{Path, PathBuf};
use std::time::Duration;

use filecoin::CircuitId;

pub use budget::{Budget, host_memory};
pub use read::{Error, Warning, unused};

use crate::address::Address;
use read::Values;

/// Where the file is unless another one is named.
pub const DEFAULT_FILE: &str = "/data/zk/cuzk.toml";

/// All of it. The fields are the keys of the file; [`keys::KEYS`] says what each does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `[daemon]`
    pub daemon: Daemon,
    /// `[memory]`
    pub memory: Memory,
    /// `[gpus]`
    pub gpus: Gpus,
    /// `[synthesis]`
    pub synthesis: Synthesis,
    /// `[srs]`
    pub srs: Srs,
    /// `[logging]`
    pub logging: Logging,
    /// `[security]`
    pub security: Security,
    /// `[store]`
    pub store: StoreConfig,
    /// `[limits]`
    pub limits: Limits,
    /// `[cache]`
    pub cache: Cache,
    /// What the file says that has no effect.
    pub warnings: Vec<Warning>,
}

/// `[daemon]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Daemon {
    /// gRPC.
    pub listen: Address,
    /// HTTP, if wanted.
    pub status_listen: Option<Address>,
}

/// `[memory]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// For units at work.
    pub total_budget: Budget,
    /// Bytes that `auto` leaves.
    pub safety_margin: u64,
}

/// `[gpus]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpus {
    /// As the driver counts them; empty for all.
    pub devices: Vec<u32>,
}

/// `[synthesis]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synthesis {
    /// CPU threads; `None` for all.
    pub threads: Option<u32>,
}

/// `[srs]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Srs {
    /// Folder of parameter files.
    pub param_cache: PathBuf,
    /// Keys to load at the start.
    pub preload: Vec<CircuitId>,
    /// Whether test keys will do.
    pub allow_test_keys: bool,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `[logging]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logging {
    /// Filter, as `RUST_LOG`.
    pub level: String,
    /// How lines are written.
    pub format: LogFormat,
}

/// `[security]`
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Security {
    /// Beyond this host only with TLS.
    pub require_tls: bool,
    /// Certificate chain and private key, both PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Authorities of clients' certificates, PEM.
    pub client_ca: Option<PathBuf>,
}

/// `[store]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreConfig {
    /// Folder of database and payloads.
    pub path: PathBuf,
    /// How long results are kept.
    pub max_age: Duration,
    /// How many.
    pub max_results: u64,
    /// How many bytes of proofs.
    pub max_result_bytes: u64,
}

/// `[limits]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Open jobs.
    pub max_jobs: u64,
    /// Payload bytes of open jobs.
    pub max_payload_bytes: u64,
    /// Largest gRPC message, bytes.
    pub max_message_bytes: u64,
    /// How long running units may go on when the daemon is told to end.
    pub shutdown_grace: Duration,
}

/// `[cache]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// The folder, if named.
    pub dir: Option<PathBuf>,
}

impl Config {
    /// Reads `file`, or the default file where there is one, and the environment.
    ///
    /// # Errors
    /// [`Error`], which names file, key and remedy.
    pub fn load(file: Option<&Path>) -> Result<Self, Error> {
        let (name, text) = read::file(file)?;
        Self::parse(&name, &text, |variable| std::env::var(variable).ok())
    }

    /// Reads the file's text and the environment.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(
        name: &Path,
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let values = Values::new(name, text, &environment)?;
        let path = |table, key| values.text(table, key).map(non_empty_path);
        let config = Self {
            daemon: Daemon {
                listen: values.parsed("daemon", "listen", |text| text.parse().ok())?,
                status_listen: match values.text("daemon", "status_listen")?.as_str() {
                    "" => None,
                    _ => Some(values.parsed("daemon", "status_listen", |text| text.parse().ok())?),
                },
            },
            memory: Memory {
                total_budget: values.budget("memory", "total_budget")?,
                safety_margin: values.size("memory", "safety_margin")?,
            },
            gpus: Gpus {
                devices: values.numbers("gpus", "devices")?,
            },
            synthesis: Synthesis {
                threads: Some(values.small("synthesis", "threads")?).filter(|&n| n > 0),
            },
            srs: Srs {
                param_cache: values.text("srs", "param_cache")?.into(),
                preload: values.circuits("srs", "preload")?,
                allow_test_keys: values.flag("srs", "allow_test_keys")?,
            },
            logging: Logging {
                level: values.text("logging", "level")?,
                format: values.parsed("logging", "format", |text| match text {
                    "text" => Some(LogFormat::Text),
                    "json" => Some(LogFormat::Json),
                    _ => None,
                })?,
            },
            security: Security {
                require_tls: values.flag("security", "require_tls")?,
                identity: match (path("security", "tls_cert")?, path("security", "tls_key")?) {
                    (Some(certificate), Some(key)) => Some((certificate, key)),
                    (None, None) => None,
                    (Some(_), None) => return Err(values.missing("security", "tls_key")),
                    (None, Some(_)) => return Err(values.missing("security", "tls_cert")),
                },
                client_ca: path("security", "client_ca")?,
            },
            store: StoreConfig {
                path: values.text("store", "path")?.into(),
                max_age: values.span("store", "max_age")?,
                max_results: values.number("store", "max_results")?,
                max_result_bytes: values.size("store", "max_result_bytes")?,
            },
            limits: Limits {
                max_jobs: values.number("limits", "max_jobs")?,
                max_payload_bytes: values.size("limits", "max_payload_bytes")?,
                max_message_bytes: values.size("limits", "max_message_bytes")?,
                shutdown_grace: values.span("limits", "shutdown_grace")?,
            },
            cache: Cache {
                dir: path("cache", "dir")?,
            },
            warnings: values.warnings(),
        };
        if config.security.client_ca.is_some() && config.security.identity.is_none() {
            return Err(values.missing("security", "tls_cert"));
        }
        Ok(config)
    }

    /// The engine's settings, with `budget` bytes of host memory for units.
    pub fn engine(&self, budget: u64) -> engine::service::Settings {
        let mut settings = engine::service::Settings::default();
        settings.scheduler.max_jobs = usize::try_from(self.limits.max_jobs).unwrap_or(usize::MAX);
        settings.scheduler.max_payload_bytes = self.limits.max_payload_bytes;
        settings.scheduler.budget_bytes = budget;
        // Less than two reserved parts would leave nothing to the other kinds.
        settings.scheduler.lane_bytes = settings.scheduler.lane_bytes.min(budget / 4);
        settings.retention.max_age_ms = millis(self.store.max_age);
        settings.retention.max_results = self.store.max_results;
        settings.retention.max_result_bytes = self.store.max_result_bytes;
        // The stored form has longer headers than the wire's.
        settings.payload_limit = self.limits.max_message_bytes.saturating_add(1 << 20);
        settings
    }
}

impl Default for Config {
    /// What an empty file says.
    fn default() -> Self {
        Self::parse(Path::new(DEFAULT_FILE), "", |_| None)
            .expect("invariant: a test parses the defaults")
    }
}

fn non_empty_path(text: String) -> Option<PathBuf> {
    (!text.is_empty()).then(|| text.into())
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
