//! What a vanilla check found, where, and what to do about it.

use std::fmt;

use crate::domain::Domain;

/// The first thing of a vanilla proof that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Where.
    pub place: Place,
    /// What.
    pub fault: Fault,
}

impl Failure {
    /// A failure at a place. Boxed, for it is large and rare.
    pub(crate) fn new(place: Place, fault: Fault) -> Box<Failure> {
        Box::new(Failure { place, fault })
    }
}

/// A place in a vanilla proof.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// Partition, counted from 0; none for values of the whole request.
    pub partition: Option<usize>,
    /// Number of the sector (PoSt).
    pub sector: Option<u64>,
    /// Challenge within partition or sector, counted from 0.
    pub challenge: Option<usize>,
    /// Layer of labels, counted from 1.
    pub layer: Option<u32>,
    /// The element's path inside the challenge's proof, by the names of its fields.
    pub element: String,
}

impl Place {
    /// A value of the whole request.
    pub(crate) fn whole(element: &str) -> Place {
        Place {
            element: element.to_owned(),
            ..Place::default()
        }
    }
}

/// A node in messages and comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node(pub [u8; 32]);

impl<D: Domain> From<D> for Node {
    fn from(node: D) -> Self {
        Node(*node.as_bytes())
    }
}

/// The first eight bytes: enough to find a value, short enough to read.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", hex::encode(&self.0[..8]))
    }
}

/// What does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A list does not have the length this proof type needs.
    #[error("has {actual} {what}, expected {expected}")]
    Count {
        /// What is counted.
        what: &'static str,
        /// How many there are.
        actual: usize,
        /// How many there must be.
        expected: usize,
    },

    /// A request's variant and its proof type name different kinds.
    #[error("the proof type is not of the request's kind")]
    Kind,

    /// A Merkle path does not have the levels of this tree.
    #[error(
        "level {level} of the path does not have the {expected} nodes it must have (0: no such level)"
    )]
    PathShape {
        /// Level, lowest 0.
        level: usize,
        /// Children of a node of that level, 0 where the path must have ended.
        expected: usize,
    },

    /// A position among siblings is not below the arity.
    #[error("level {level} of the path puts the node at position {index} of {arity}")]
    PathPosition {
        /// Level, lowest 0.
        level: usize,
        /// The position.
        index: u64,
        /// Children of a node of that level.
        arity: usize,
    },

    /// A Merkle path leads to another leaf than the derived one.
    #[error("the path opens leaf {actual}, but {role} is node {expected}")]
    PathIndex {
        /// Leaf that the path's positions spell.
        actual: u64,
        /// Leaf that must be opened.
        expected: u64,
        /// What the expected leaf is.
        role: Role,
    },

    /// The root written in a proof is not the root of the tree it must belong to.
    #[error("the proof's root is {actual}, but the root of {tree} is {expected}")]
    Root {
        /// Root in the proof.
        actual: Node,
        /// Root of the tree.
        expected: Node,
        /// Which tree.
        tree: &'static str,
    },

    /// A Merkle path does not hash to its root.
    #[error("the path hashes to {computed}, not to the root {root}")]
    PathHash {
        /// Where the path leads.
        computed: Node,
        /// Where it must lead.
        root: Node,
    },

    /// A column's hash is not the leaf whose inclusion is shown.
    #[error("the column hashes to {computed}, but the leaf shown is {leaf}")]
    ColumnHash {
        /// Hash of the rows.
        computed: Node,
        /// Leaf of the inclusion proof.
        leaf: Node,
    },

    /// A node or layer number is not the derived one.
    #[error("names {what} {actual}, expected {expected}")]
    Number {
        /// Node or layer.
        what: &'static str,
        /// Number in the proof.
        actual: u64,
        /// Derived number.
        expected: u64,
    },

    /// A label's parent is not the parent column's label.
    #[error("parent {slot} is {actual}, but the label in that parent's column is {expected}")]
    ParentLabel {
        /// Which of the 37.
        slot: usize,
        /// Label in the labelling proof.
        actual: Node,
        /// Label in the parent's column.
        expected: Node,
    },

    /// A label is not the hash of its parents.
    #[error("the label recomputed from its parents is {computed}, but the column holds {column}")]
    Label {
        /// SHA-256 over the parents.
        computed: Node,
        /// Label in the challenge's column.
        column: Node,
    },

    /// A replica node is not the encoding of its data.
    #[error("data encodes to {computed}, but the replica holds {replica}")]
    Encoding {
        /// Label + data, or old node + ρ · data.
        computed: Node,
        /// Leaf of the replica tree.
        replica: Node,
    },

    /// A replica commitment is not the hash of the two roots.
    #[error("Poseidon(comm_c, root of the replica tree) is {computed}, but {name} is {expected}")]
    Commitment {
        /// Which commitment.
        name: &'static str,
        /// Hash of the roots.
        computed: Node,
        /// The public value.
        expected: Node,
    },

    /// An apex leaf, or the root of the apex tree, is not a node of the data tree.
    #[error("the apex {what} is {actual}, but the data path passes through {expected}")]
    Apex {
        /// `leaf` or `root`.
        what: &'static str,
        /// Node of the apex tree.
        actual: Node,
        /// Node of the data path.
        expected: Node,
    },

    /// The replica id does not belong to this miner and sector.
    #[error(
        "is {actual}, but miner f0{miner} and sector {sector} with this ticket and comm_d have {expected}"
    )]
    ReplicaId {
        /// In the request.
        actual: Node,
        /// Recomputed.
        expected: Node,
        /// Actor id.
        miner: u64,
        /// Sector number.
        sector: u64,
    },

    /// Sectors of a window request do not ascend.
    #[error("sector {sector} follows sector {previous}, but sector numbers must ascend")]
    SectorOrder {
        /// The sector.
        sector: u64,
        /// The one before it.
        previous: u64,
    },
}

/// What a leaf that must be opened is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The challenge itself.
    Challenge,
    /// A parent of the challenged node on its layer.
    DrgParent(usize),
    /// A parent of the challenged node on the layer before.
    ExpanderParent(usize),
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Challenge => f.write_str("the challenge"),
            Role::DrgParent(i) => write!(f, "DRG parent {i} of the challenge"),
            Role::ExpanderParent(i) => write!(f, "expander parent {i} of the challenge"),
        }
    }
}

impl Fault {
    /// A short constant name, for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Fault::Count { .. } => "COUNT",
            Fault::Kind => "KIND",
            Fault::PathShape { .. } => "PATH_SHAPE",
            Fault::PathPosition { .. } => "PATH_POSITION",
            Fault::PathIndex { .. } => "PATH_INDEX",
            Fault::Root { .. } => "ROOT",
            Fault::PathHash { .. } => "PATH_HASH",
            Fault::ColumnHash { .. } => "COLUMN_HASH",
            Fault::Number { .. } => "NUMBER",
            Fault::ParentLabel { .. } => "PARENT_LABEL",
            Fault::Label { .. } => "LABEL",
            Fault::Encoding { .. } => "ENCODING",
            Fault::Commitment { .. } => "COMMITMENT",
            Fault::Apex { .. } => "APEX",
            Fault::ReplicaId { .. } => "REPLICA_ID",
            Fault::SectorOrder { .. } => "SECTOR_ORDER",
        }
    }

    /// What to do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Fault::Count { .. } | Fault::Kind | Fault::PathShape { .. } => {
                "generate the vanilla proof again, for this proof type"
            }
            Fault::PathIndex { .. } | Fault::Number { .. } => {
                "the vanilla proof was made for other randomness, another seed, partition or proof \
                 type: generate it for the values of this request"
            }
            Fault::Root { .. } | Fault::Commitment { .. } => {
                "the vanilla proof belongs to another sector or to other commitments: pair it with its own"
            }
            Fault::ReplicaId { .. } => {
                "name the miner and the sector number that the sector was sealed with"
            }
            Fault::SectorOrder { .. } => {
                "sort the entries by sector number and name each sector once"
            }
            Fault::PathPosition { .. }
            | Fault::PathHash { .. }
            | Fault::ColumnHash { .. }
            | Fault::ParentLabel { .. }
            | Fault::Label { .. }
            | Fault::Encoding { .. }
            | Fault::Apex { .. } => {
                "the vanilla proof is damaged, or the sealed files are: generate it again, and check the sector if that fails"
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(partition) = self.partition {
            write!(f, "partition {partition}, ")?;
        }
        if let Some(sector) = self.sector {
            write!(f, "sector {sector}, ")?;
        }
        if let Some(challenge) = self.challenge {
            write!(f, "challenge {challenge}, ")?;
        }
        if let Some(layer) = self.layer {
            write!(f, "layer {layer}, ")?;
        }
        f.write_str(&self.element)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.fault, self.fault.remedy())
    }
}

impl std::error::Error for Failure {}
