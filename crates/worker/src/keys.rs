//! The keys that a worker holds: loaded once, kept while there is room, the one not used for
//! longest let go first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::scheduler::Fault;
use filecoin::CircuitId;
use groth16::key::{KeyError, KeyStore};
use groth16::progress::Progress;
use pipeline::CircuitKey;

use crate::serve::UnitError;

/// How much a worker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyLimits {
    /// Bytes of key files, all together. One key is held however large it is.
    pub bytes: u64,
    /// Number of keys. A GPU has room for the one it proves with.
    pub count: usize,
}

/// A circuit and its key.
pub struct LoadedKey {
    /// Both.
    pub key: CircuitKey,
    /// Bytes of the key file.
    pub bytes: u64,
}

/// Loaded keys, by circuit.
pub struct KeyRing {
    store: KeyStore,
    limits: KeyLimits,
    held: Mutex<Held>,
    /// Held while a key is loaded, so that two units load one key once.
    loading: Mutex<()>,
}

#[derive(Default)]
struct Held {
    keys: BTreeMap<CircuitId, (u64, Arc<LoadedKey>)>,
    clock: u64,
}

impl Held {
    fn get(&mut self, id: CircuitId) -> Option<Arc<LoadedKey>> {
        self.clock += 1;
        let clock = self.clock;
        self.keys.get_mut(&id).map(|(used, key)| {
            *used = clock;
            Arc::clone(key)
        })
    }

    /// Lets go of what is over the limits and not in use, `but` in any case.
    fn trim(&mut self, limits: KeyLimits, but: CircuitId) {
        loop {
            let bytes: u64 = self.keys.values().map(|(_, key)| key.bytes).sum();
            if bytes <= limits.bytes && self.keys.len() <= limits.count {
                return;
            }
            let idle = self.keys.iter().filter(|(id, (_, key))| {
                // In the map alone: no unit has it.
                **id != but && Arc::strong_count(key) == 1
            });
            let Some(oldest) = idle.min_by_key(|(_, (used, _))| *used).map(|(id, _)| *id) else {
                return;
            };
            self.keys.remove(&oldest);
        }
    }
}

impl KeyRing {
    /// Keys from this store.
    pub fn new(store: KeyStore, limits: KeyLimits) -> Self {
        Self {
            store,
            limits,
            held: Mutex::default(),
            loading: Mutex::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The circuit's key, and how long loading it took if it was not there.
    ///
    /// # Errors
    /// Parameters that are missing, damaged or not to be trusted.
    pub fn get(
        &self,
        id: CircuitId,
        progress: &dyn Progress,
    ) -> Result<(Arc<LoadedKey>, Option<Duration>), UnitError> {
        if let Some(key) = self.held().get(id) {
            return Ok((key, None));
        }
        let _one_at_a_time = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = self.held().get(id) {
            return Ok((key, None));
        }
        let began = Instant::now();
        let key = Arc::new(self.load(id, progress)?);
        let mut held = self.held();
        held.clock += 1;
        let used = held.clock;
        held.keys.insert(id, (used, Arc::clone(&key)));
        held.trim(self.limits, id);
        Ok((key, Some(began.elapsed())))
    }

    fn load(&self, id: CircuitId, progress: &dyn Progress) -> Result<LoadedKey, UnitError> {
        let circuit = id
            .compiled()
            .map_err(|e| UnitError::new(Fault::Device, &e))?;
        let spec = id.key_spec(&circuit);
        let key = self.store.proving_key(&spec, progress);
        let key = key.map_err(|error| UnitError::new(key_fault(&error), &error))?;
        Ok(LoadedKey {
            key: CircuitKey::new(circuit, key.key),
            bytes: spec.counts.params_bytes(),
        })
    }

    /// Lets go of a key. Whether it was loaded, and the bytes that became free: none if a unit
    /// uses it, then it stays.
    pub fn evict(&self, id: CircuitId) -> (bool, u64) {
        let mut held = self.held();
        match held.keys.get(&id) {
            None => (false, 0),
            Some((_, key)) if Arc::strong_count(key) > 1 => (true, 0),
            Some((_, key)) => {
                let bytes = key.bytes;
                held.keys.remove(&id);
                (true, bytes)
            }
        }
    }

    /// What is loaded, and the bytes of each.
    pub fn loaded(&self) -> Vec<(CircuitId, u64)> {
        let held = self.held();
        held.keys
            .iter()
            .map(|(id, (_, key))| (*id, key.bytes))
            .collect()
    }
}

/// A file that cannot be read may be read the next time; one that is wrong stays wrong.
pub(crate) fn key_fault(error: &KeyError) -> Fault {
    match error {
        KeyError::Io { .. } => Fault::Try,
        _ => Fault::Parameters,
    }
}
