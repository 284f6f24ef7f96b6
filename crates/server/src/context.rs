//! What every call works with.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use engine::Service;
use engine::scheduler::Millis;
use tokio::sync::{Semaphore, watch};
use tonic::Status;

use crate::config::Config;
use crate::keys::Keys;
use crate::metrics::Snapshot;
use crate::observatory::Observatory;
use crate::readiness::Readiness;
use crate::waiters::Waiters;

/// Threads that decode requests and write payloads; those of WinningPoSt have their own.
const DECODERS_MIN: usize = 2;
/// Decoding WinningPoSt requests at one time.
const LANE_DECODERS: usize = 2;
/// Uploads being received at one time: each holds a thread and a file. Those of WinningPoSt have
/// their own.
const UPLOADS: usize = 32;
/// Short questions to engine and store at one time.
const QUESTIONS: usize = 32;
/// Keys being loaded or unloaded at one time.
const KEY_WORK: usize = 2;

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Closing {
    /// It has not.
    Open,
    /// No new jobs are taken.
    Draining,
    /// Who still waits is told to come back later.
    Closed,
}

/// Which threads do blocking work.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    /// Decoding and storing a request.
    Decode,
    /// The same for WinningPoSt.
    DecodeLane,
    /// A question to engine or store.
    Question,
    /// Receiving an upload.
    Upload,
    /// The same for WinningPoSt.
    UploadLane,
    /// Loading or unloading keys.
    Keys,
}

/// Shared by all calls.
pub(crate) struct Context {
    pub(crate) service: Arc<Service>,
    pub(crate) keys: Arc<dyn Keys>,
    pub(crate) observatory: Arc<Observatory>,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) config: Config,
    pub(crate) waiters: Waiters,
    pub(crate) closing: watch::Receiver<Closing>,
    /// One copy more for every call that is being answered.
    calls: Arc<()>,
    decode: Arc<Semaphore>,
    decode_lane: Arc<Semaphore>,
    questions: Arc<Semaphore>,
    key_work: Arc<Semaphore>,
    uploads: Arc<Semaphore>,
    uploads_lane: Arc<Semaphore>,
}

impl Context {
    pub(crate) fn new(
        service: Arc<Service>,
        keys: Arc<dyn Keys>,
        (observatory, readiness): (Arc<Observatory>, Arc<Readiness>),
        config: Config,
        closing: watch::Receiver<Closing>,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            waiters: Waiters::new(Arc::clone(&service)),
            service,
            keys,
            observatory,
            readiness,
            config,
            closing,
            calls: Arc::new(()),
            decode: Arc::new(Semaphore::new((cores / 2).max(DECODERS_MIN))),
            decode_lane: Arc::new(Semaphore::new(LANE_DECODERS)),
            questions: Arc::new(Semaphore::new(QUESTIONS)),
            key_work: Arc::new(Semaphore::new(KEY_WORK)),
            uploads: Arc::new(Semaphore::new(UPLOADS)),
            uploads_lane: Arc::new(Semaphore::new(UPLOADS)),
        }
    }

    /// Runs blocking work on a thread of its own kind, when one is free.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        kind: Work,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Status> {
        let threads = match kind {
            Work::Decode => &self.decode,
            Work::DecodeLane => &self.decode_lane,
            Work::Question => &self.questions,
            Work::Upload => &self.uploads,
            Work::UploadLane => &self.uploads_lane,
            Work::Keys => &self.key_work,
        };
        let ended = |_| Status::unavailable("the daemon is shutting down");
        let permit = Arc::clone(threads).acquire_owned().await.map_err(ended)?;
        let context = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            // Held until the work is done, also when nobody waits for it any more.
            let _permit = permit;
            work(&context)
        });
        let done = done.await;
        done.map_err(|error| {
            tracing::error!(%error, "a call did not end as it should");
            Status::internal("an internal check failed; the log of the daemon tells which")
        })
    }

    /// To be held as long as a call is being answered: the end waits for it.
    pub(crate) fn call(&self) -> Arc<()> {
        Arc::clone(&self.calls)
    }

    /// Whether calls are being answered.
    pub(crate) fn has_calls(&self) -> bool {
        Arc::strong_count(&self.calls) > 1
    }

    /// Whether the end has come so far.
    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow() > Closing::Open
    }

    /// Whether test keys may be in use: then everything says so.
    pub(crate) fn test_keys(&self) -> bool {
        self.config.srs.allow_test_keys || self.keys.loaded().iter().any(|key| key.test_key)
    }

    /// Whether the daemon is ready for work at this moment.
    pub(crate) fn is_ready(&self) -> bool {
        self.readiness.is_ready()
            && !self.is_closing()
            && self.service.status().store_error.is_none()
    }

    /// The metrics, as text.
    pub(crate) fn metrics(&self) -> String {
        let status = self.service.status();
        let ready = self.readiness.is_ready() && !self.is_closing() && status.store_error.is_none();
        let snapshot = Snapshot {
            status,
            devices: self.keys.devices(),
            keys: self.keys.loaded(),
            at_work: self.observatory.at_work(),
            pinned: self.keys.pinned(),
            ready,
        };
        self.observatory.metrics().text(&snapshot)
    }
}

/// Milliseconds since the Unix epoch, as the engine counts them.
pub(crate) fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |span| {
        u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
    })
}
