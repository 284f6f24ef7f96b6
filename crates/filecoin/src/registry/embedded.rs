//! The compiled circuits that ship in the binary.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use r1cs::CompiledCircuit;

use super::CircuitId;
use crate::error::Error;

/// The file of one circuit, made by the `recorder` crate. `absent` until the
/// file is committed, `present` from then on.
macro_rules! circuit {
    (present $name:literal) => {
        Some(include_bytes!(concat!("../../circuits/", $name, ".r1cs")).as_slice())
    };
    (absent $name:literal) => {
        None
    };
}

const CIRCUITS: [Option<&[u8]>; CircuitId::COUNT] = [
    circuit!(present "porep-2k"),
    circuit!(present "porep-8m"),
    circuit!(present "porep-512m"),
    circuit!(present "porep-32g"),
    circuit!(present "porep-64g"),
    circuit!(present "snap-2k"),
    circuit!(present "snap-8m"),
    circuit!(present "snap-512m"),
    circuit!(present "snap-32g"),
    circuit!(present "snap-64g"),
    circuit!(present "wpost-2k"),
    circuit!(present "wpost-8m"),
    circuit!(present "wpost-512m"),
    circuit!(present "wpost-32g"),
    circuit!(absent "wpost-64g"),
    circuit!(present "winning-2k"),
    circuit!(present "winning-8m"),
    circuit!(present "winning-512m"),
    circuit!(present "winning-32g"),
    circuit!(present "winning-64g"),
];

/// The loaded circuits that someone still uses.
static LOADED: [Mutex<Weak<CompiledCircuit>>; CircuitId::COUNT] =
    [const { Mutex::new(Weak::new()) }; CircuitId::COUNT];

impl CircuitId {
    /// The compiled circuit. It is decoded once and shared for as long as anyone
    /// holds it; callers of the same circuit wait for the first one.
    ///
    /// # Errors
    /// [`Error::CircuitNotEmbedded`] and [`Error::CircuitDamaged`]: a broken build.
    pub fn compiled(self) -> Result<Arc<CompiledCircuit>, Error> {
        // A panic while decoding leaves the old value, which is still sound.
        let mut loaded = LOADED[self.position()]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(circuit) = loaded.upgrade() {
            return Ok(circuit);
        }
        let circuit = CompiledCircuit::from_bytes(self.compiled_bytes()?).map_err(|source| {
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
    ///
    /// # Errors
    /// [`Error::CircuitNotEmbedded`] if this build lacks it.
    pub fn compiled_bytes(self) -> Result<&'static [u8], Error> {
        CIRCUITS[self.position()].ok_or(Error::CircuitNotEmbedded { circuit: self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::SectorSize;

    #[test]
    fn circuits_load_once_and_are_dropped_with_their_last_user() {
        for id in CircuitId::all() {
            match id.compiled() {
                Ok(circuit) => {
                    assert!(Arc::ptr_eq(&circuit, &id.compiled().unwrap()), "{id}");
                    drop(circuit);
                    // The small ones may be in use by tests on other threads.
                    if id.size >= SectorSize::MiB512 {
                        let loaded = LOADED[id.position()].lock().unwrap();
                        assert!(loaded.upgrade().is_none(), "{id} is kept");
                    }
                }
                Err(error) => {
                    assert_eq!(error.code(), "CIRCUIT_NOT_EMBEDDED");
                    assert!(error.is_internal());
                }
            }
        }
    }
}
