//! Registered proof numbers: the network's names for proof type, version and size.

use std::fmt;

use crate::error::Error;
use crate::registry::{CircuitId, ProofKind, SectorSize};

/// Version of the stacked DRG PoRep, with its optional feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SealVersion {
    /// API 1.0.0.
    V1,
    /// API 1.1.0.
    V1_1,
    /// API 1.1.0 with synthetic challenges.
    Synthetic,
    /// API 1.2.0, non-interactive: many partitions, to be aggregated.
    NonInteractive,
}

/// `RegisteredSealProof`, numbers 0–19.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegisteredSealProof {
    /// Version and feature.
    pub version: SealVersion,
    /// Size of the sector.
    pub size: SectorSize,
}

impl RegisteredSealProof {
    /// All 20 seal proofs by number.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        (0..20u8).map(|number| Self {
            version: match number / 5 {
                0 => SealVersion::V1,
                1 => SealVersion::V1_1,
                2 => SealVersion::Synthetic,
                _ => SealVersion::NonInteractive,
            },
            size: SectorSize::of_registered(number.into()),
        })
    }

    /// The seal proof with this number.
    ///
    /// # Errors
    /// [`Error::UnknownProofNumber`] above 19.
    pub fn from_number(number: u64) -> Result<Self, Error> {
        usize::try_from(number)
            .ok()
            .and_then(|n| Self::all().nth(n))
            .ok_or(Error::UnknownProofNumber {
                kind: ProofKind::Porep,
                number,
                allowed: "0 to 19",
            })
    }

    /// Its number.
    pub fn number(self) -> u64 {
        let base = match self.version {
            SealVersion::V1 => 0,
            SealVersion::V1_1 => 5,
            SealVersion::Synthetic => 10,
            SealVersion::NonInteractive => 15,
        };
        base + self.size as u64
    }

    /// Its JSON name, for example `StackedDrg32GiBV1_1`.
    pub fn name(self) -> String {
        let suffix = match self.version {
            SealVersion::V1 => "V1",
            SealVersion::V1_1 => "V1_1",
            SealVersion::Synthetic => "V1_1_Feat_SyntheticPoRep",
            SealVersion::NonInteractive => "V1_2_Feat_NonInteractivePoRep",
        };
        format!("StackedDrg{}{suffix}", self.size)
    }

    /// The seal proof with this JSON name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|proof| proof.name() == name)
    }

    /// The key under which phase 1 keeps the vanilla proofs: it never has a
    /// version suffix.
    pub fn vanilla_key(self) -> String {
        vanilla_key(self.size)
    }

    /// Groth16 proofs of one sector.
    pub fn partitions(self) -> usize {
        let shape = self.size.porep();
        match self.version {
            SealVersion::NonInteractive => shape.ni_partitions,
            _ => shape.partitions,
        }
    }

    /// The 32-byte porep id: the number as u64 LE, nonce 0 as u64 LE, zeros.
    pub fn porep_id(self) -> [u8; 32] {
        let mut id = [0; 32];
        id[..8].copy_from_slice(&self.number().to_le_bytes());
        id
    }

    /// The circuit; all versions of a size share it.
    pub fn circuit(self) -> CircuitId {
        CircuitId::new(ProofKind::Porep, self.size)
    }
}

/// Key of the vanilla proofs in a phase-1 output of this sector size.
pub(crate) fn vanilla_key(size: SectorSize) -> String {
    format!("StackedDrg{size}V1")
}

impl fmt::Display for RegisteredSealProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.number())
    }
}

/// Version of a PoSt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PostVersion {
    /// Winning, numbers 0–4.
    WinningV1,
    /// Window, numbers 5–9: a challenge depends on the sector's position.
    WindowV1,
    /// Window, numbers 10–14 (`V1_1` in Go, `V1_2` in Rust): it does not.
    WindowV1_2,
}

/// `RegisteredPoStProof`, numbers 0–14.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegisteredPostProof {
    /// Winning or window, and version.
    pub version: PostVersion,
    /// Size of the sectors.
    pub size: SectorSize,
}

impl RegisteredPostProof {
    /// All 15 PoSt proofs by number.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        (0..15u8).map(|number| Self {
            version: match number / 5 {
                0 => PostVersion::WinningV1,
                1 => PostVersion::WindowV1,
                _ => PostVersion::WindowV1_2,
            },
            size: SectorSize::of_registered(number.into()),
        })
    }

    /// The PoSt of this kind with this number.
    ///
    /// # Errors
    /// [`Error::UnknownProofNumber`] above 14, and for a winning number where a
    /// window one is asked for or the other way round.
    pub fn from_number(kind: ProofKind, number: u64) -> Result<Self, Error> {
        let proof = usize::try_from(number)
            .ok()
            .and_then(|n| Self::all().nth(n));
        proof
            .filter(|proof| proof.kind() == kind)
            .ok_or(Error::UnknownProofNumber {
                kind,
                number,
                allowed: match kind {
                    ProofKind::Winning => "0 to 4",
                    _ => "5 to 14",
                },
            })
    }

    /// Its number.
    pub fn number(self) -> u64 {
        let base = match self.version {
            PostVersion::WinningV1 => 0,
            PostVersion::WindowV1 => 5,
            PostVersion::WindowV1_2 => 10,
        };
        base + self.size as u64
    }

    /// The reference's name, for example `StackedDrgWindow32GiBV1_2`.
    pub fn name(self) -> String {
        match self.version {
            PostVersion::WinningV1 => format!("StackedDrgWinning{}V1", self.size),
            PostVersion::WindowV1 => format!("StackedDrgWindow{}V1", self.size),
            PostVersion::WindowV1_2 => format!("StackedDrgWindow{}V1_2", self.size),
        }
    }

    /// Window or winning.
    pub fn kind(self) -> ProofKind {
        match self.version {
            PostVersion::WinningV1 => ProofKind::Winning,
            PostVersion::WindowV1 | PostVersion::WindowV1_2 => ProofKind::Window,
        }
    }

    /// The circuit; both window versions share it.
    pub fn circuit(self) -> CircuitId {
        CircuitId::new(self.kind(), self.size)
    }
}

impl fmt::Display for RegisteredPostProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.number())
    }
}

/// `RegisteredUpdateProof`, numbers 0–4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegisteredUpdateProof {
    /// Size of the sector.
    pub size: SectorSize,
}

impl RegisteredUpdateProof {
    /// The update proof with this number.
    ///
    /// # Errors
    /// [`Error::UnknownProofNumber`] above 4.
    pub fn from_number(number: u64) -> Result<Self, Error> {
        if number < 5 {
            Ok(Self {
                size: SectorSize::of_registered(number),
            })
        } else {
            Err(Error::UnknownProofNumber {
                kind: ProofKind::Snap,
                number,
                allowed: "0 to 4",
            })
        }
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.size as u64
    }

    /// The reference's name, for example `StackedDrg32GiBV1`.
    pub fn name(self) -> String {
        format!("StackedDrg{}V1", self.size)
    }

    /// The circuit.
    pub fn circuit(self) -> CircuitId {
        CircuitId::new(ProofKind::Snap, self.size)
    }
}

impl fmt::Display for RegisteredUpdateProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seal_numbers_and_names_round_trip() {
        for (number, proof) in RegisteredSealProof::all().enumerate() {
            let number = number as u64;
            assert_eq!(proof.number(), number);
            assert_eq!(proof.size as u64, number % 5);
            assert_eq!(RegisteredSealProof::from_number(number).unwrap(), proof);
            assert_eq!(RegisteredSealProof::from_name(&proof.name()), Some(proof));
        }
        assert!(RegisteredSealProof::from_number(20).is_err());
        assert!(RegisteredSealProof::from_number(u64::MAX).is_err());
        let ni = RegisteredSealProof::from_number(18).unwrap();
        assert_eq!(ni.name(), "StackedDrg32GiBV1_2_Feat_NonInteractivePoRep");
        assert_eq!(ni.vanilla_key(), "StackedDrg32GiBV1");
        assert_eq!(ni.partitions(), 126);
        assert_eq!(hex::encode(&ni.porep_id()[..9]), "120000000000000000");
    }

    #[test]
    fn post_numbers_keep_window_and_winning_apart() {
        for (number, proof) in RegisteredPostProof::all().enumerate() {
            let number = number as u64;
            assert_eq!(proof.number(), number);
            let (own, other) = if number < 5 {
                (ProofKind::Winning, ProofKind::Window)
            } else {
                (ProofKind::Window, ProofKind::Winning)
            };
            assert_eq!(
                RegisteredPostProof::from_number(own, number).unwrap(),
                proof
            );
            assert!(RegisteredPostProof::from_number(other, number).is_err());
        }
        assert!(RegisteredPostProof::from_number(ProofKind::Window, 15).is_err());
    }

    #[test]
    fn update_numbers() {
        for number in 0..5 {
            let proof = RegisteredUpdateProof::from_number(number).unwrap();
            assert_eq!(proof.number(), number);
        }
        assert!(RegisteredUpdateProof::from_number(5).is_err());
    }
}
