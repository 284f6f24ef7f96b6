//! Whether the daemon is alive and ready, looked at all the time: engine and devices again and again,
//! keys until all that are there are right.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use engine::Service;
use engine::scheduler::DeviceStatus;
use filecoin::CircuitId;
use server::{Keys, Part, Readiness};

use super::fleet::Fleet;
use super::notify::{self, Notifier};
use crate::failure::{Exit, Failure};

/// Pause between looks.
const PERIOD: Duration = Duration::from_millis(250);
/// The same for keys, while there is none or one that cannot be used.
const KEYS_PERIOD: Duration = Duration::from_secs(5);

/// The watching thread.
pub struct Watching {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Watching {
    /// Ends it.
    pub fn end(self) {
        drop(self.stop);
        // It has nothing to tell.
        let _ = self.thread.join();
    }
}

/// Starts watching, and loads the keys that are wanted from the start.
///
/// # Errors
/// No thread for it.
pub fn start(
    (service, fleet): (Arc<Service>, Arc<Fleet>),
    (readiness, manager): (Arc<Readiness>, Arc<Notifier>),
    preload: Vec<CircuitId>,
) -> Result<Watching, Failure> {
    let (stop, stopped) = channel();
    let watch = move || {
        let mut keys = KeyWatch::default();
        let mut preload = Some(preload);
        loop {
            keys.look(&fleet, &readiness);
            // An engine that does not answer any more is not alive.
            if service.ask(|_| ()).is_ok() {
                manager.tell(notify::ALIVE);
            }
            if look_at_devices(&service, &readiness)
                && let Some(circuits) = preload.take()
            {
                load(&fleet, circuits);
            }
            match stopped.recv_timeout(PERIOD) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    };
    let thread = Builder::new().name("watch".to_owned()).spawn(watch);
    let thread = thread.map_err(|e| {
        let remedy = "raise the limit of processes (ulimit -u)";
        Failure::new(Exit::Resources, "THREAD", "cannot start a thread", remedy).because(&e)
    })?;
    Ok(Watching { stop, thread })
}

/// The keys as they were found last.
#[derive(Default)]
struct KeyWatch {
    right: bool,
    looked: Option<Instant>,
    /// What was wrong, so that it is said once.
    wrong: Vec<String>,
}

impl KeyWatch {
    /// Looks for keys and checks them, unless they were right before, or it is too soon. A key that
    /// comes after all is looked for when its circuit is asked for, too ([`Keys::check`]).
    fn look(&mut self, fleet: &Fleet, readiness: &Readiness) {
        if self.right || self.looked.is_some_and(|at| at.elapsed() < KEYS_PERIOD) {
            return;
        }
        let checked = fleet.check_all().into_iter();
        let failed = checked.filter_map(|(circuit, result)| Some((circuit, result.err()?)));
        let failed: Vec<_> = failed.collect();
        let mut wrong: Vec<_> = failed.iter().map(|(_, error)| error.to_string()).collect();
        if wrong.is_empty() && fleet.circuits().is_empty() {
            let cause = "there is no parameter file that a device has the memory for; see `cuzk params list`";
            wrong.push(cause.to_owned());
        }
        self.looked = Some(Instant::now());
        self.right = wrong.is_empty();
        match wrong.first() {
            Some(cause) => readiness.failed(Part::Keys, cause),
            None => readiness.passed(Part::Keys),
        }
        if wrong == self.wrong {
            return;
        }
        for (circuit, error) in &failed {
            tracing::error!(%circuit, code = error.code, "{error}");
        }
        if failed.is_empty() && !self.right {
            tracing::error!("{}", wrong[0]);
        }
        self.wrong = wrong;
    }
}

/// A device says that it is ready when it has passed its test. Returns whether any is.
fn look_at_devices(service: &Service, readiness: &Readiness) -> bool {
    let devices = service.status().devices;
    if devices
        .iter()
        .any(|(_, device)| device.status == DeviceStatus::Ready)
    {
        readiness.passed(Part::SelfTest);
        return true;
    }
    let cause = devices
        .iter()
        .find_map(|(name, device)| match &device.status {
            DeviceStatus::Quarantined(cause) => Some(format!("{name}: {cause}")),
            _ => None,
        });
    if let Some(cause) = cause {
        readiness.failed(Part::SelfTest, cause);
    }
    false
}

/// In the background: a key may take minutes.
fn load(fleet: &Arc<Fleet>, circuits: Vec<CircuitId>) {
    let fleet = Arc::clone(fleet);
    let load = move || {
        for circuit in circuits {
            match fleet.preload(circuit) {
                Ok(loaded) => tracing::info!(%circuit, ms = loaded.load_ms, "key preloaded"),
                Err(error) => tracing::error!(%circuit, code = error.code, "{error}"),
            }
        }
    };
    // Without it keys are loaded when they are needed.
    let _ = Builder::new().name("preload".to_owned()).spawn(load);
}
