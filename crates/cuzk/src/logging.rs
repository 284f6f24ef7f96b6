//! Logs, to standard error: `RUST_LOG` decides what is told, before any option or file.

use tracing_subscriber::EnvFilter;

/// A worker's: level first and no time, as the daemon adds both when it passes the lines on.
pub fn for_worker() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time();
    // It fails if there is one already: then that one will do.
    let _ = subscriber.try_init();
}
