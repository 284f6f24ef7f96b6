//! Counts, variants and path lengths of vanilla proofs, held against the
//! proof type. What a proof claims is checked elsewhere.

use crate::decode::path::At;
use crate::domain::Domain;
use crate::error::Error;
use crate::merkle::{InclusionPath, MerkleProof, ProofData};
use crate::registry::{DRG_PARENTS, EXP_PARENTS, LABEL_PARENTS, ProofKind, SectorSize};
use crate::{porep, post, snap};

/// The proof type that the counts are held against.
#[derive(Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) size: SectorSize,
    /// Proof type for messages, for example `StackedDrg32GiBV1_1 (8)`.
    pub(crate) context: &'a str,
}

/// One part of a Merkle path: its name, its levels, the siblings per level.
type Part = (&'static str, usize, usize);

/// Variant name and parts of the proofs of one tree.
struct TreeProof {
    variant: &'static str,
    parts: Vec<Part>,
}

impl TreeProof {
    /// The binary SHA-256 tree over a sector's data.
    fn data(size: SectorSize) -> Self {
        Self {
            variant: "Single",
            parts: vec![("path", size.log2_nodes() as usize, 1)],
        }
    }

    /// The Poseidon trees of comm_c and comm_r_last.
    fn poseidon(size: SectorSize) -> Self {
        let tree = size.tree();
        let base = (tree.base_levels, tree.base_arity - 1);
        match (tree.sub_arity, tree.top_arity) {
            (0, _) => Self {
                variant: "Single",
                parts: vec![("path", base.0, base.1)],
            },
            (sub, 0) => Self {
                variant: "Sub",
                parts: vec![("base_proof", base.0, base.1), ("sub_proof", 1, sub - 1)],
            },
            (sub, top) => Self {
                variant: "Top",
                parts: vec![
                    ("base_proof", base.0, base.1),
                    ("sub_proof", 1, sub - 1),
                    ("top_proof", 1, top - 1),
                ],
            },
        }
    }
}

/// Both trees of a sector, made once per request.
pub(crate) struct Shapes<'a> {
    expected: Expected<'a>,
    data: TreeProof,
    poseidon: TreeProof,
}

impl<'a> Shapes<'a> {
    pub(crate) fn new(expected: Expected<'a>) -> Self {
        Self {
            expected,
            data: TreeProof::data(expected.size),
            poseidon: TreeProof::poseidon(expected.size),
        }
    }

    /// Refuses a list that has not exactly `expected` items.
    pub(crate) fn count(
        &self,
        at: &At<'_>,
        what: &'static str,
        actual: usize,
        expected: usize,
    ) -> Result<(), Error> {
        if actual == expected {
            return Ok(());
        }
        Err(self.wrong_count(at, what, actual, expected.to_string()))
    }

    /// The error for a list of the wrong length.
    pub(crate) fn wrong_count(
        &self,
        at: &At<'_>,
        what: &'static str,
        actual: usize,
        expected: String,
    ) -> Error {
        Error::WrongCount {
            field: at.to_string(),
            what,
            actual,
            expected,
            context: self.expected.context.to_owned(),
        }
    }

    fn merkle<D: Domain>(
        &self,
        proof: &MerkleProof<D>,
        tree: &TreeProof,
        at: &At<'_>,
    ) -> Result<(), Error> {
        let at = at.field("data");
        let variant = match proof.data {
            ProofData::Single { .. } => "Single",
            ProofData::Sub { .. } => "Sub",
            ProofData::Top { .. } => "Top",
        };
        if variant != tree.variant {
            return Err(Error::BadField {
                field: at.to_string(),
                cause: format!(
                    "is a {variant} Merkle proof, {} has {} ones here",
                    self.expected.context, tree.variant
                ),
                remedy: "generate the vanilla proof again, for this proof type",
            });
        }
        for ((name, part), &(_, levels, siblings)) in proof.parts().zip(&tree.parts) {
            self.part(part, levels, siblings, &at.field(name))?;
        }
        Ok(())
    }

    fn part<D: Domain>(
        &self,
        part: &InclusionPath<D>,
        levels: usize,
        siblings: usize,
        at: &At<'_>,
    ) -> Result<(), Error> {
        let at = at.field("path");
        self.count(&at, "levels", part.path.len(), levels)?;
        for (i, element) in part.path.iter().enumerate() {
            let at = at.index(i);
            let actual = element.hashes.len();
            self.count(&at.field("hashes"), "siblings", actual, siblings)?;
            if element.index > siblings as u64 {
                return Err(Error::BadField {
                    field: at.field("index").to_string(),
                    cause: format!(
                        "{} is not a position among {} nodes",
                        element.index,
                        siblings + 1
                    ),
                    remedy: "generate the vanilla proof again",
                });
            }
        }
        Ok(())
    }

    /// One sector's entry of a PoSt request.
    pub(crate) fn post(
        &self,
        kind: ProofKind,
        entry: &post::FallbackPoStSectorProof,
        at: &At<'_>,
    ) -> Result<(), Error> {
        let shape = match kind {
            ProofKind::Winning => self.expected.size.winning(),
            _ => self.expected.size.window(),
        };
        let vanilla = at.field("vanilla_proof");
        let at = vanilla.field("sectors");
        self.count(&at, "sector proofs", entry.vanilla_proof.sectors.len(), 1)?;
        let at = at.index(0);
        let at = at.field("inclusion_proofs");
        let proofs = &entry.sector().inclusion_proofs;
        let expected = shape.inclusion_proofs_per_entry(kind);
        self.count(&at, "inclusion proofs", proofs.len(), expected)?;
        for (i, proof) in proofs.iter().enumerate() {
            self.merkle(proof, &self.poseidon, &at.index(i))?;
        }
        Ok(())
    }

    /// One partition of a SnapDeals request.
    pub(crate) fn snap(&self, partition: &snap::PartitionProof, at: &At<'_>) -> Result<(), Error> {
        let shape = self.expected.size.snap();
        let apex = partition.apex_leafs.len();
        self.count(
            &at.field("apex_leafs"),
            "apex leafs",
            apex,
            shape.apex_leafs,
        )?;
        let at = at.field("challenge_proofs");
        let proofs = &partition.challenge_proofs;
        self.count(&at, "challenges", proofs.len(), shape.challenges)?;
        for (i, proof) in proofs.iter().enumerate() {
            let at = at.index(i);
            self.merkle(&proof.proof_r_old, &self.poseidon, &at.field("proof_r_old"))?;
            self.merkle(&proof.proof_d_new, &self.data, &at.field("proof_d_new"))?;
            self.merkle(&proof.proof_r_new, &self.poseidon, &at.field("proof_r_new"))?;
        }
        Ok(())
    }

    /// All partitions of a PoRep request.
    pub(crate) fn porep(
        &self,
        partitions: &[Vec<porep::Proof>],
        expected_partitions: usize,
        at: &At<'_>,
    ) -> Result<(), Error> {
        let challenges = self.expected.size.porep().challenges;
        self.count(at, "partitions", partitions.len(), expected_partitions)?;
        for (k, partition) in partitions.iter().enumerate() {
            let at = at.index(k);
            self.count(&at, "challenges", partition.len(), challenges)?;
            for (i, proof) in partition.iter().enumerate() {
                self.porep_challenge(proof, &at.index(i))?;
            }
        }
        Ok(())
    }

    fn porep_challenge(&self, proof: &porep::Proof, at: &At<'_>) -> Result<(), Error> {
        self.merkle(&proof.comm_d_proofs, &self.data, &at.field("comm_d_proofs"))?;
        let last = &proof.comm_r_last_proof;
        self.merkle(last, &self.poseidon, &at.field("comm_r_last_proof"))?;

        let columns_at = at.field("replica_column_proofs");
        let columns = &proof.replica_column_proofs;
        self.column(&columns.c_x, &columns_at.field("c_x"))?;
        for (name, list, degree) in [
            ("drg_parents", &columns.drg_parents, DRG_PARENTS),
            ("exp_parents", &columns.exp_parents, EXP_PARENTS),
        ] {
            let at = columns_at.field(name);
            self.count(&at, "parents", list.len(), degree)?;
            for (i, column) in list.iter().enumerate() {
                self.column(column, &at.index(i))?;
            }
        }

        let labels_at = at.field("labeling_proofs");
        let layers = self.expected.size.porep().layers;
        self.count(&labels_at, "layers", proof.labeling_proofs.len(), layers)?;
        for (i, label) in proof.labeling_proofs.iter().enumerate() {
            self.label(label, &labels_at.index(i))?;
        }
        self.label(&proof.encoding_proof, &at.field("encoding_proof"))
    }

    fn column(&self, proof: &porep::ColumnProof, at: &At<'_>) -> Result<(), Error> {
        let column = at.field("column");
        let layers = self.expected.size.porep().layers;
        self.count(
            &column.field("rows"),
            "rows",
            proof.column.rows.len(),
            layers,
        )?;
        let inclusion = at.field("inclusion_proof");
        self.merkle(&proof.inclusion_proof, &self.poseidon, &inclusion)
    }

    fn label(&self, proof: &porep::LabelingProof, at: &At<'_>) -> Result<(), Error> {
        let parents = proof.parents.len();
        self.count(&at.field("parents"), "parents", parents, LABEL_PARENTS)
    }
}
