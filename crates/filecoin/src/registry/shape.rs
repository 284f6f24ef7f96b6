//! Fixed parameters of each proof by sector size (the network's constants).

use super::{CircuitId, ProofKind, SectorSize};

/// Parents of a node in the base (depth-robust) graph.
pub const DRG_PARENTS: usize = 6;
/// Parents of a node in the expander graph.
pub const EXP_PARENTS: usize = 8;
/// Parent labels that enter one label, the parents repeated.
pub const LABEL_PARENTS: usize = 37;

/// Shape of the Poseidon trees (comm_c, comm_r_last): arity 8 in the base trees,
/// then at most one level over them, then at most one on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeShape {
    /// Levels inside one base tree.
    pub base_levels: usize,
    /// Arity of the base trees: 8.
    pub base_arity: usize,
    /// Base trees under one sub-tree root; 0 if there is no such level.
    pub sub_arity: usize,
    /// Sub-trees under the root; 0 if there is no such level.
    pub top_arity: usize,
}

impl TreeShape {
    /// `base-sub-top`, as parameter file names write it: `8-8-2`.
    pub fn label(self) -> String {
        format!("{}-{}-{}", self.base_arity, self.sub_arity, self.top_arity)
    }
}

/// Numbers of a PoRep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PorepShape {
    /// Label layers.
    pub layers: usize,
    /// Challenges per partition.
    pub challenges: usize,
    /// Partitions of an interactive (or synthetic) PoRep.
    pub partitions: usize,
    /// Partitions of a non-interactive PoRep.
    pub ni_partitions: usize,
}

/// Numbers of a PoSt circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostShape {
    /// Sectors in the circuit.
    pub sectors: usize,
    /// Challenges per sector of the circuit.
    pub challenges: usize,
}

impl PostShape {
    /// Inclusion proofs that one entry of a request holds. A winning entry holds
    /// all 66, each of which is a sector of the circuit.
    pub fn inclusion_proofs_per_entry(self, kind: ProofKind) -> usize {
        match kind {
            ProofKind::Winning => self.sectors,
            _ => self.challenges,
        }
    }
}

/// Numbers of a SnapDeals update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapShape {
    /// Partitions, each with a circuit of its own.
    pub partitions: usize,
    /// Challenges per partition.
    pub challenges: usize,
    /// Apex leafs per partition.
    pub apex_leafs: usize,
    /// High challenge bits that select the encoding randomness.
    pub h: u64,
}

impl SnapShape {
    /// The public input that selects `h` among the six values the circuit knows: the bit of its
    /// position in 7..=12, of the first where all six are the same.
    pub fn h_selector(self) -> u64 {
        match self.h {
            7..=12 => 1 << (self.h - 7),
            _ => 1,
        }
    }
}

impl SectorSize {
    /// Shape of the Poseidon trees.
    pub fn tree(self) -> TreeShape {
        let (base_levels, sub_arity, top_arity) = match self {
            Self::KiB2 => (2, 0, 0),
            Self::MiB8 => (6, 0, 0),
            Self::MiB512 => (8, 0, 0),
            Self::GiB32 => (9, 8, 0),
            Self::GiB64 => (9, 8, 2),
        };
        TreeShape {
            base_levels,
            base_arity: 8,
            sub_arity,
            top_arity,
        }
    }

    /// Whether the sector is of a size used on the network for storage.
    fn is_large(self) -> bool {
        matches!(self, Self::GiB32 | Self::GiB64)
    }

    /// Numbers of the PoRep.
    pub fn porep(self) -> PorepShape {
        if self.is_large() {
            PorepShape {
                layers: 11,
                challenges: 18,
                partitions: 10,
                ni_partitions: 126,
            }
        } else {
            PorepShape {
                layers: 2,
                challenges: 2,
                partitions: 1,
                ni_partitions: 13,
            }
        }
    }

    /// Numbers of the WindowPoSt circuit (one partition).
    pub fn window(self) -> PostShape {
        let sectors = match self {
            Self::GiB32 => 2349,
            Self::GiB64 => 2300,
            _ => 2,
        };
        PostShape {
            sectors,
            challenges: 10,
        }
    }

    /// Numbers of the WinningPoSt circuit: one sector, taken as 66 of one challenge.
    pub fn winning(self) -> PostShape {
        PostShape {
            sectors: 66,
            challenges: 1,
        }
    }

    /// Numbers of the SnapDeals update.
    pub fn snap(self) -> SnapShape {
        let (partitions, challenges, apex_leafs, h) = match self {
            Self::KiB2 => (1, 10, 8, 1),
            Self::MiB8 => (4, 10, 128, 10),
            _ => (16, 86, 128, 10),
        };
        SnapShape {
            partitions,
            challenges,
            apex_leafs,
            h,
        }
    }
}

impl CircuitId {
    /// Groth16 proofs in one complete result of this kind. A non-interactive
    /// PoRep has [`PorepShape::ni_partitions`] instead.
    pub fn partitions(self) -> usize {
        match self.kind {
            ProofKind::Porep => self.size.porep().partitions,
            ProofKind::Snap => self.size.snap().partitions,
            ProofKind::Window | ProofKind::Winning => 1,
        }
    }

    /// Sectors and challenges of the circuit if it is a PoSt.
    pub fn post(self) -> Option<PostShape> {
        match self.kind {
            ProofKind::Window => Some(self.size.window()),
            ProofKind::Winning => Some(self.size.winning()),
            ProofKind::Porep | ProofKind::Snap => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_have_one_leaf_per_node() {
        for size in SectorSize::ALL {
            let tree = size.tree();
            let leafs = (tree.base_arity as u64).pow(tree.base_levels as u32)
                * tree.sub_arity.max(1) as u64
                * tree.top_arity.max(1) as u64;
            assert_eq!(leafs, size.nodes(), "{size}");
        }
    }

    #[test]
    fn apex_leafs_are_nodes_of_the_data_tree() {
        for size in SectorSize::ALL {
            let snap = size.snap();
            assert!((snap.apex_leafs * snap.partitions) as u64 <= size.nodes());
            assert!((snap.apex_leafs * snap.partitions).is_power_of_two());
        }
    }
}
