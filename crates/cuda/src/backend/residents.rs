//! The circuits that are on the device at a time.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::loaded::{Identity, Loaded};
use super::lock;
use crate::error::{CudaError, Result};

/// Circuits with their keys, in the order in which they were used last.
#[derive(Default)]
pub struct Residents {
    state: Mutex<State>,
    /// Held by who loads one: one at a time. Proofs of those that are there do not wait for it.
    loading: Mutex<()>,
}

#[derive(Default)]
struct State {
    /// The one used last at the end.
    entries: Vec<Resident>,
    /// Free memory before the first of them was there.
    free_before: u64,
}

struct Resident {
    loaded: Arc<Loaded>,
    /// Closed once its memory is free again.
    gone: Receiver<()>,
}

/// A circuit that is on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResidentCircuit {
    /// Its digest.
    pub circuit: [u8; 32],
    /// Whether its key is streamed.
    pub streamed: bool,
    /// Proofs that may be under way at a time.
    pub proofs: usize,
    /// Bytes of its plan.
    pub planned_bytes: u64,
    /// Whether a proof of it is under way.
    pub in_use: bool,
}

impl Residents {
    /// For the time of a load.
    pub fn loading(&self) -> MutexGuard<'_, ()> {
        lock(&self.loading)
    }

    /// The one that is asked for, which is then the one used last.
    pub fn find(&self, identity: &Identity) -> Option<Arc<Loaded>> {
        let mut state = lock(&self.state);
        let mut entries = state.entries.iter();
        let place = entries.position(|entry| entry.loaded.identity == *identity)?;
        state.entries[place..].rotate_left(1);
        state.entries.last().map(|entry| Arc::clone(&entry.loaded))
    }

    /// Adds one.
    pub fn insert(&self, loaded: Loaded, gone: Receiver<()>) -> Arc<Loaded> {
        let loaded = Arc::new(loaded);
        let mut state = lock(&self.state);
        if state.entries.is_empty() {
            state.free_before = loaded.free_before;
        }
        state.entries.push(Resident {
            loaded: Arc::clone(&loaded),
            gone,
        });
        loaded
    }

    /// Takes away the one that was used least lately, of those that no proof uses if there are any,
    /// and waits until its memory is free, at most for `limit`. Whoever asks for it from now on has to load it
    /// again. `false`: there was none.
    ///
    /// # Errors
    /// [`CudaError::Busy`] after that.
    pub fn remove_one(&self, limit: Duration) -> Result<bool> {
        let removed = {
            let mut state = lock(&self.state);
            let idle = |entry: &Resident| !in_use(&entry.loaded);
            let place = state.entries.iter().position(idle).unwrap_or(0);
            (place < state.entries.len()).then(|| state.entries.remove(place))
        };
        let Some(Resident { loaded, gone }) = removed else {
            return Ok(false);
        };
        drop(loaded);
        match gone.recv_timeout(limit) {
            Err(RecvTimeoutError::Timeout) => Err(CudaError::Busy {
                seconds: limit.as_secs(),
            }),
            _ => Ok(true),
        }
    }

    /// Takes away all keys of a circuit; their memory is free once no proof uses it. How many bytes that
    /// is.
    pub fn remove_circuit(&self, circuit: &[u8; 32]) -> u64 {
        let removed: Vec<Resident> = {
            let mut state = lock(&self.state);
            let is = |entry: &mut Resident| entry.loaded.identity.circuit == *circuit;
            state.entries.extract_if(.., is).collect()
        };
        removed.iter().map(|entry| entry.loaded.plan.bytes()).sum()
    }

    /// All, in the order in which they were used last.
    pub fn list(&self) -> Vec<ResidentCircuit> {
        let state = lock(&self.state);
        let entries = state.entries.iter().map(|entry| &entry.loaded);
        let circuit = |loaded: &Arc<Loaded>| ResidentCircuit {
            circuit: loaded.identity.circuit,
            streamed: loaded.plan.streaming().is_some(),
            proofs: loaded.plan.units(),
            planned_bytes: loaded.plan.bytes(),
            in_use: in_use(loaded),
        };
        entries.map(circuit).collect()
    }

    /// Free memory before the first of them was there.
    pub fn free_before(&self) -> u64 {
        lock(&self.state).free_before
    }
}

/// Whether somebody has it besides the list.
fn in_use(loaded: &Arc<Loaded>) -> bool {
    Arc::strong_count(loaded) > 1
}
