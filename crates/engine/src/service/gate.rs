//! The store as devices' processes reach it.

use std::sync::{Arc, PoisonError, RwLock};

use store::Store;

use crate::Error;

/// Lets readings through until the service ends. Closing waits for those under way, so that the
/// store is free for the next service as soon as this one has ended, whatever processes outlive it.
pub(super) struct Gate(RwLock<Option<Arc<dyn Store>>>);

impl Gate {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self(RwLock::new(Some(store)))
    }

    /// Reads from the store.
    ///
    /// Errors: the store's, and [`Error::Stopped`] when the gate is closed.
    pub(super) fn read<T>(
        &self,
        reading: impl FnOnce(&dyn Store) -> store::Result<T>,
    ) -> Result<T, Error> {
        let store = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Ok(reading(store.as_deref().ok_or(Error::Stopped)?)?)
    }

    pub(super) fn close(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use store::SqliteStore;

    use super::*;

    #[test]
    fn closing_waits_for_readings_and_frees_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let gate = Gate::new(Arc::new(SqliteStore::open(folder.path()).unwrap()));
        let (begun, has_begun) = channel();
        let (end, may_end) = channel::<()>();
        std::thread::scope(|scope| {
            let gate = &gate;
            scope.spawn(move || {
                gate.read(|store| {
                    begun.send(()).unwrap();
                    may_end.recv().unwrap();
                    store.open_jobs()
                })
                .unwrap();
            });
            has_begun.recv().unwrap();
            let closing = scope.spawn(|| gate.close());
            std::thread::sleep(Duration::from_millis(20));
            assert!(!closing.is_finished());
            end.send(()).unwrap();
        });
        assert!(matches!(
            gate.read(|store| store.open_jobs()),
            Err(Error::Stopped)
        ));
        SqliteStore::open(folder.path()).expect("the gate held the last of it");
    }
}
