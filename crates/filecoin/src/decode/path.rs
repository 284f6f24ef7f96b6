//! Where in a request a value stands: a chain of borrowed segments that costs
//! nothing until an error prints it.

use std::fmt;

/// One step into a value.
#[derive(Debug, Clone, Copy)]
enum Segment<'a> {
    Field(&'a str),
    Index(usize),
}

/// A place in a request, printed like `vanilla_proofs[3].sectors[0].comm_c`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    parent: Option<&'a At<'a>>,
    segment: Segment<'a>,
}

impl<'a> At<'a> {
    /// A top-level field.
    pub(crate) fn root(field: &'a str) -> Self {
        Self {
            parent: None,
            segment: Segment::Field(field),
        }
    }

    /// A field of this value.
    pub(crate) fn field(&'a self, name: &'a str) -> Self {
        Self {
            parent: Some(self),
            segment: Segment::Field(name),
        }
    }

    /// An item of this list.
    pub(crate) fn index(&'a self, index: usize) -> Self {
        Self {
            parent: Some(self),
            segment: Segment::Index(index),
        }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.segment {
            Segment::Field(name) if self.parent.is_some() => write!(f, ".{name}"),
            Segment::Field(name) => f.write_str(name),
            Segment::Index(index) => write!(f, "[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_fields_and_indices() {
        let root = At::root("vanilla_proofs");
        let entry = root.index(3);
        let sectors = entry.field("sectors");
        assert_eq!(
            sectors.index(0).field("comm_c").to_string(),
            "vanilla_proofs[3].sectors[0].comm_c"
        );
    }
}
