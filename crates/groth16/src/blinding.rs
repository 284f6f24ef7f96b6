//! The two scalars that hide the witness.

use blstrs::Scalar;
use ff::PrimeField;
use rand_core::{OsRng, RngCore};

use crate::error::Error;

/// The blinding scalars r and s of one proof.
///
/// Two proofs with the same r and s give away a relation between their witnesses, so a value
/// is used up by the proof it goes into and cannot be copied or printed.
pub struct Blinding {
    pub(crate) r: Scalar,
    pub(crate) s: Scalar,
}

impl Blinding {
    /// Fresh scalars from the operating system, uniform in Fr.
    ///
    /// # Errors
    /// [`Error::NoRandomness`] when the operating system gives none.
    pub fn random() -> Result<Self, Error> {
        Ok(Blinding {
            r: uniform()?,
            s: uniform()?,
        })
    }

    /// Given scalars: **for comparisons with another prover only**. A proof made with known or
    /// repeated scalars is not zero-knowledge.
    #[cfg(any(test, feature = "fixed-blinding"))]
    pub fn fixed(r: Scalar, s: Scalar) -> Self {
        Blinding { r, s }
    }
}

/// A uniform scalar, by rejection: r is 0.906·2^255, so one draw in ten is drawn again.
fn uniform() -> Result<Scalar, Error> {
    loop {
        let mut bytes = [0; 32];
        OsRng
            .try_fill_bytes(&mut bytes)
            .map_err(Error::NoRandomness)?;
        bytes[31] &= 0x7f;
        if let Some(scalar) = Scalar::from_repr_vartime(bytes) {
            return Ok(scalar);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_draw_is_another() {
        let (one, two) = (Blinding::random().unwrap(), Blinding::random().unwrap());
        let scalars = [one.r, one.s, two.r, two.s];
        for (i, a) in scalars.iter().enumerate() {
            assert!(scalars[..i].iter().all(|b| a != b));
        }
    }
}
