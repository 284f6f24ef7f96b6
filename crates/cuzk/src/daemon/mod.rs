//! `cuzk daemon`: store, engine, workers and server put together, and taken apart in order.

mod devices;
mod fleet;
mod gpus;
mod notify;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use engine::Service;
use groth16::DeviceKind;
use groth16::key::KeyStore;
use server::config::LogFormat;
use server::{Config, Observatory, Part, Readiness, Server, ServerSettings};
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use store::{SqliteStore, Store};
use worker::ProofJudge;

use crate::Context;
use crate::cli::DaemonArgs;
use crate::failure::{Exit, Failure};
use crate::logging;
use notify::Notifier;

/// How long a worker that was told to stop may go on with its unit. A GPU's unit takes seconds, and
/// a process that is killed in the middle of a kernel can take the driver with it.
pub const STOP_GRACE: Duration = Duration::from_secs(20);
/// How long a unit may run on a CPU: of any kind but WinningPoSt, and of that.
const CPU_UNIT_LIMIT_MS: u64 = 6 * 3600 * 1000;
const CPU_WINNING_LIMIT_MS: u64 = 10 * 60 * 1000;
/// How long the daemon waits for its workers to be gone, beyond their grace.
const GONE_LIMIT: Duration = Duration::from_secs(10);

/// Runs the daemon until it is told to end.
///
/// # Errors
/// Whatever keeps it from starting. Once it serves, it ends only by signal.
pub fn run(context: &Context, args: &DaemonArgs) -> Result<(), Failure> {
    let config = configuration(context, args)?;
    logging::for_daemon(
        &config.logging.level,
        config.logging.format == LogFormat::Json,
    )?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    // Before anything is running that would have to be ended in order.
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(|e| no_signals(&e))?;
    // A file that meets the limit of file sizes is an error of the write, not the daemon's end.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map_err(|e| no_signals(&e))?;

    let keys = key_store(context, &config);
    let store = SqliteStore::open(&config.store.path)?;
    let observatory = Arc::new(Observatory::new());
    let fleet = devices::start(context, args, &config, &keys, Arc::clone(&observatory))?;
    let fleet = Arc::new(fleet);
    let budget = config.memory.budget_bytes();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        store = %config.store.path.display(),
        budget_bytes = budget,
        "cuzk daemon starts"
    );
    let readiness = Arc::new(Readiness::default());
    let service = Arc::new(Service::start_observed(
        engine_settings(&config, budget, fleet.kind()),
        Arc::new(store) as Arc<dyn Store>,
        Arc::new(ProofJudge::new(keys)),
        fleet.devices(),
        Arc::clone(&observatory) as Arc<dyn engine::service::Observer>,
    )?);
    readiness.passed(Part::Store);
    let grace = config.limits.shutdown_grace;
    let preload = config.srs.preload.clone();
    let server = Server::start(
        ServerSettings {
            config,
            observatory,
            readiness: Arc::clone(&readiness),
        },
        Arc::clone(&service),
        Arc::clone(&fleet) as Arc<dyn server::Keys>,
    )?;
    let http = server.http_address().map(ToString::to_string);
    tracing::info!(grpc = %server.grpc_address(), http, "listening");
    let manager = Arc::new(Notifier::from_environment());
    let watching = watch::start(
        (Arc::clone(&service), Arc::clone(&fleet)),
        (readiness, Arc::clone(&manager)),
        preload,
    )?;
    manager.tell(notify::READY);

    let signal = signals.forever().next();
    manager.tell(notify::STOPPING);
    tracing::info!(
        signal,
        grace_s = grace.as_secs(),
        "ending: no more jobs are taken"
    );
    end_at_once_at_the_next(signals);
    let drained = server.shutdown(grace);
    if !drained {
        tracing::warn!("units were still at work; their jobs go on at the next start");
    }
    watching.end();
    let gone = fleet.stop(STOP_GRACE + GONE_LIMIT);
    drop(service);
    tracing::info!(drained, workers_gone = gone, "ended");
    Ok(())
}

/// File, environment, then the options.
fn configuration(context: &Context, args: &DaemonArgs) -> Result<Config, Failure> {
    let mut config = Config::load(context.config.file())?;
    if let Some(listen) = &args.listen {
        config.daemon.listen = listen.parse().map_err(|e: server::BadAddress| {
            Failure::new(Exit::Usage, "USAGE", e.to_string(), "correct --listen")
        })?;
    }
    if let Some(level) = &args.log_level {
        config.logging.level.clone_from(level);
    }
    Ok(config)
}

/// The folders of the command line, the daemon's own first.
fn key_store(context: &Context, config: &Config) -> KeyStore {
    let allow_test_keys = config.srs.allow_test_keys;
    let mut folders: Vec<PathBuf> = vec![config.srs.param_cache.clone()];
    for folder in context.config.key_folders(None, allow_test_keys) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    KeyStore {
        folders,
        cache: Some(context.config.cache().to_owned()),
        allow_test_keys,
    }
}

/// The engine's settings. Its limits of time are those of GPUs: a CPU may take hours for a unit of
/// a 32 GiB sector, and whether it gets on is told by its heartbeats.
fn engine_settings(config: &Config, budget: u64, kind: DeviceKind) -> engine::service::Settings {
    let mut settings = config.engine(budget);
    if kind != DeviceKind::Gpu {
        let limits = &mut settings.scheduler.unit_limit_ms;
        for limit in [&mut limits.porep, &mut limits.snap, &mut limits.window] {
            *limit = (*limit).max(CPU_UNIT_LIMIT_MS);
        }
        limits.winning = limits.winning.max(CPU_WINNING_LIMIT_MS);
    }
    settings
}

fn no_signals(error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Resources,
        "SIGNALS",
        "signals cannot be received",
        "raise the limits of open files and processes (ulimit -n, ulimit -u)",
    )
    .because(error)
}

/// The second signal is the last: the workers notice by themselves that the daemon is gone.
fn end_at_once_at_the_next(mut signals: Signals) {
    // Without the thread a second signal is only not listened to.
    let _ = thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            if signals.forever().next().is_some() {
                tracing::warn!("ending at once; open jobs go on at the next start");
                std::process::exit(i32::from(Exit::Internal as u8));
            }
        });
}
