//! Logs, to standard error: `RUST_LOG` decides what is told, before any option or file.

use tracing_subscriber::EnvFilter;

use crate::failure::{Exit, Failure};

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

/// The daemon's, with the configured level, as text or as one JSON object a line.
///
/// # Errors
/// `CONFIG_INVALID` for a level that is no filter.
pub fn for_daemon(level: &str, json: bool) -> Result<(), Failure> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(text) if !text.is_empty() => EnvFilter::try_new(text),
        _ => EnvFilter::try_new(level),
    };
    let filter = filter.map_err(|e| {
        Failure::new(
            Exit::Usage,
            "CONFIG_INVALID",
            "the log level is not one",
            "use error, warn, info, debug or trace, or a filter such as info,engine=debug",
        )
        .because(&e)
    })?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    let _ = if json {
        subscriber.json().flatten_event(true).try_init()
    } else {
        subscriber.try_init()
    };
    Ok(())
}
