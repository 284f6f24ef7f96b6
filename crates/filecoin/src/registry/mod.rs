//! Every circuit of Filecoin's proofs: four kinds × five sector sizes.

mod embedded;
mod key;
mod params;
mod shape;

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

pub use params::OfficialKey;
pub use shape::{
    DRG_PARENTS, EXP_PARENTS, LABEL_PARENTS, PorepShape, PostShape, SnapShape, TreeShape,
};

/// The statement that a proof is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProofKind {
    /// PoRep seal commit, phase 2.
    Porep,
    /// SnapDeals: update of an empty sector.
    Snap,
    /// WindowPoSt of one partition.
    Window,
    /// WinningPoSt.
    Winning,
}

impl ProofKind {
    /// All kinds, in the order of their wire numbers.
    pub const ALL: [Self; 4] = [Self::Porep, Self::Snap, Self::Window, Self::Winning];

    /// Number in `cuzk.v1.ProofKind`.
    pub fn number(self) -> u32 {
        match self {
            Self::Porep => 1,
            Self::Snap => 2,
            Self::Window => 3,
            Self::Winning => 4,
        }
    }

    /// Name in `cuzk.v1.ProofKind`.
    pub fn enum_name(self) -> &'static str {
        match self {
            Self::Porep => "POREP_SEAL_COMMIT",
            Self::Snap => "SNAP_DEALS_UPDATE",
            Self::Window => "WINDOW_POST_PARTITION",
            Self::Winning => "WINNING_POST",
        }
    }

    /// First part of circuit names.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Porep => "porep",
            Self::Snap => "snap",
            Self::Window => "wpost",
            Self::Winning => "winning",
        }
    }

    /// The kind in words, as in queue listings and status pages.
    pub fn label(self) -> &'static str {
        match self {
            Self::Porep => "porep-c2",
            Self::Snap => "snap-update",
            Self::Window => "window-post",
            Self::Winning => "winning-post",
        }
    }
}

impl fmt::Display for ProofKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// The five sector sizes; the discriminant is a registered proof number mod 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SectorSize {
    /// 2 KiB (tests).
    KiB2 = 0,
    /// 8 MiB (tests).
    MiB8 = 1,
    /// 512 MiB (tests).
    MiB512 = 2,
    /// 32 GiB.
    GiB32 = 3,
    /// 64 GiB.
    GiB64 = 4,
}

impl SectorSize {
    /// All sizes, ascending.
    pub const ALL: [Self; 5] = [
        Self::KiB2,
        Self::MiB8,
        Self::MiB512,
        Self::GiB32,
        Self::GiB64,
    ];

    /// The size that a registered proof number names (its remainder mod 5).
    pub fn of_registered(number: u64) -> Self {
        Self::ALL[(number % 5) as usize]
    }

    /// The size with so many bytes, if it is one of the five.
    pub fn from_bytes(bytes: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|size| size.bytes() == bytes)
    }

    /// Bytes of a sector.
    pub fn bytes(self) -> u64 {
        self.nodes() * 32
    }

    /// 32-byte nodes of a sector; a power of two.
    pub fn nodes(self) -> u64 {
        1 << self.log2_nodes()
    }

    /// Height of the binary data tree.
    pub fn log2_nodes(self) -> u32 {
        match self {
            Self::KiB2 => 6,
            Self::MiB8 => 18,
            Self::MiB512 => 24,
            Self::GiB32 => 30,
            Self::GiB64 => 31,
        }
    }

    /// As registered proof names write it: `2KiB`.
    pub fn label(self) -> &'static str {
        match self {
            Self::KiB2 => "2KiB",
            Self::MiB8 => "8MiB",
            Self::MiB512 => "512MiB",
            Self::GiB32 => "32GiB",
            Self::GiB64 => "64GiB",
        }
    }

    /// As circuit names write it: `2k`.
    pub fn short(self) -> &'static str {
        match self {
            Self::KiB2 => "2k",
            Self::MiB8 => "8m",
            Self::MiB512 => "512m",
            Self::GiB32 => "32g",
            Self::GiB64 => "64g",
        }
    }
}

impl fmt::Display for SectorSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// One circuit: a kind of proof for a sector size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CircuitId {
    /// What is proven.
    pub kind: ProofKind,
    /// For which size of sector.
    pub size: SectorSize,
}

impl CircuitId {
    /// How many circuits there are.
    pub const COUNT: usize = 20;

    /// The circuit of this kind and size.
    pub const fn new(kind: ProofKind, size: SectorSize) -> Self {
        Self { kind, size }
    }

    /// All circuits, by kind then size.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        (0..Self::COUNT).map(|i| Self::new(ProofKind::ALL[i / 5], SectorSize::ALL[i % 5]))
    }

    /// Position in [`CircuitId::all`].
    fn position(self) -> usize {
        (self.kind.number() as usize - 1) * 5 + self.size as usize
    }

    /// `<kind>-<size>`, for example `porep-32g`.
    pub fn name(self) -> &'static str {
        NAMES[self.position()]
    }

    /// The circuit with this name.
    ///
    /// # Errors
    /// [`Error::UnknownCircuit`] for any other text.
    pub fn parse(name: &str) -> Result<Self, Error> {
        Self::all()
            .find(|id| id.name() == name)
            .ok_or_else(|| Error::UnknownCircuit {
                name: crate::error::quote(name),
            })
    }
}

impl fmt::Display for CircuitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CircuitId {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::parse(name)
    }
}

const NAMES: [&str; CircuitId::COUNT] = [
    "porep-2k",
    "porep-8m",
    "porep-512m",
    "porep-32g",
    "porep-64g",
    "snap-2k",
    "snap-8m",
    "snap-512m",
    "snap-32g",
    "snap-64g",
    "wpost-2k",
    "wpost-8m",
    "wpost-512m",
    "wpost-32g",
    "wpost-64g",
    "winning-2k",
    "winning-8m",
    "winning-512m",
    "winning-32g",
    "winning-64g",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kind_and_size_and_parse_back() {
        assert_eq!(CircuitId::all().len(), CircuitId::COUNT);
        for (i, id) in CircuitId::all().enumerate() {
            assert_eq!(id.position(), i);
            assert_eq!(
                id.name(),
                format!("{}-{}", id.kind.prefix(), id.size.short())
            );
            assert_eq!(CircuitId::parse(id.name()).unwrap(), id);
        }
        for bad in ["", "porep", "porep-32G", "porep-32g ", "window-32g"] {
            let error = CircuitId::parse(bad).unwrap_err();
            assert_eq!(error.code(), "UNKNOWN_CIRCUIT");
        }
    }

    #[test]
    fn sizes_are_the_specified_ones() {
        let bytes: Vec<u64> = SectorSize::ALL.iter().map(|s| s.bytes()).collect();
        assert_eq!(
            bytes,
            [2048, 8_388_608, 536_870_912, 34_359_738_368, 68_719_476_736]
        );
        for size in SectorSize::ALL {
            assert_eq!(SectorSize::from_bytes(size.bytes()), Some(size));
            assert_eq!(SectorSize::of_registered(size as u64 + 10), size);
        }
        assert_eq!(SectorSize::from_bytes(0), None);
        assert_eq!(SectorSize::from_bytes(2047), None);
    }
}
