//! The compiled circuits that ship in the binary.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use r1cs::CompiledCircuit;

use super::CircuitId;
use crate::error::Error;

/// The file of one circuit, made by the `recorder` crate.
macro_rules! circuit {
    ($name:literal) => {
        include_bytes!(concat!("../../circuits/", $name, ".r1cs")).as_slice()
    };
}

const CIRCUITS: [&[u8]; CircuitId::COUNT] = [
    circuit!("porep-2k"),
    circuit!("porep-8m"),
    circuit!("porep-512m"),
    circuit!("porep-32g"),
    circuit!("porep-64g"),
    circuit!("snap-2k"),
    circuit!("snap-8m"),
    circuit!("snap-512m"),
    circuit!("snap-32g"),
    circuit!("snap-64g"),
    circuit!("wpost-2k"),
    circuit!("wpost-8m"),
    circuit!("wpost-512m"),
    circuit!("wpost-32g"),
    circuit!("wpost-64g"),
    circuit!("winning-2k"),
    circuit!("winning-8m"),
    circuit!("winning-512m"),
    circuit!("winning-32g"),
    circuit!("winning-64g"),
];

/// The loaded circuits that someone still uses.
static LOADED: [Mutex<Weak<CompiledCircuit>>; CircuitId::COUNT] =
    [const { Mutex::new(Weak::new()) }; CircuitId::COUNT];

impl CircuitId {
    /// The compiled circuit. It is decoded once and shared for as long as anyone
    /// holds it; callers of the same circuit wait for the first one.
    ///
    /// # Errors
    /// [`Error::CircuitDamaged`]: a broken build.
    pub fn compiled(self) -> Result<Arc<CompiledCircuit>, Error> {
        // A panic while decoding leaves the old value, which is still sound.
        let mut loaded = LOADED[self.position()]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(circuit) = loaded.upgrade() {
            return Ok(circuit);
        }
        let circuit = CompiledCircuit::from_bytes(self.compiled_bytes()).map_err(|source| {
            Error::CircuitDamaged {
                circuit: self,
                source,
            }
        })?;
        let circuit = Arc::new(circuit);
        *loaded = Arc::downgrade(&circuit);
        Ok(circuit)
    }

    /// The compiled circuit's file, as embedded.
    pub fn compiled_bytes(self) -> &'static [u8] {
        CIRCUITS[self.position()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::SectorSize;

    #[test]
    fn circuits_load_once_and_are_dropped_with_their_last_user() {
        for id in CircuitId::all() {
            let circuit = id.compiled().unwrap();
            assert!(Arc::ptr_eq(&circuit, &id.compiled().unwrap()), "{id}");
            drop(circuit);
            // The small ones may be in use by tests on other threads.
            if id.size >= SectorSize::MiB512 {
                let loaded = LOADED[id.position()].lock().unwrap();
                assert!(loaded.upgrade().is_none(), "{id} is kept");
            }
        }
    }
}
