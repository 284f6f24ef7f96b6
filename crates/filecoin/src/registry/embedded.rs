//! The compiled circuits that ship in the binary.

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
    circuit!(absent "porep-2k"),
    circuit!(absent "porep-8m"),
    circuit!(absent "porep-512m"),
    circuit!(absent "porep-32g"),
    circuit!(absent "porep-64g"),
    circuit!(absent "snap-2k"),
    circuit!(absent "snap-8m"),
    circuit!(absent "snap-512m"),
    circuit!(absent "snap-32g"),
    circuit!(absent "snap-64g"),
    circuit!(absent "wpost-2k"),
    circuit!(absent "wpost-8m"),
    circuit!(absent "wpost-512m"),
    circuit!(absent "wpost-32g"),
    circuit!(absent "wpost-64g"),
    circuit!(absent "winning-2k"),
    circuit!(absent "winning-8m"),
    circuit!(absent "winning-512m"),
    circuit!(absent "winning-32g"),
    circuit!(absent "winning-64g"),
];

impl CircuitId {
    /// The compiled circuit's file, as embedded.
    ///
    /// # Errors
    /// [`Error::CircuitNotEmbedded`] if this build lacks it.
    pub fn compiled_bytes(self) -> Result<&'static [u8], Error> {
        CIRCUITS[self.position()].ok_or(Error::CircuitNotEmbedded { circuit: self })
    }
}
