//! A strict reader for the bincode 1.3 encoding of vanilla proofs.
//!
//! Little-endian fixed-width integers, `u64` counts, `u32` variant tags. Every
//! count is held against the bytes that follow before anything is allocated, so
//! memory stays within a small multiple of the input whatever it claims; nothing
//! recurses over the data, the types' depth is fixed.

use crate::decode::path::At;
use crate::domain::{Domain, NODE_BYTES, PoseidonDomain, Sha256Domain};
use crate::error::Error;
use crate::merkle::{InclusionPath, MerkleProof, PathElement, ProofData};
use crate::{post, snap};

/// Bytes and how far they are read.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

/// A type that the bincode encoding holds.
pub(crate) trait Binary: Sized {
    /// Fewest bytes that a value takes.
    const MIN_BYTES: usize;

    /// Reads one value, which stands at `at`.
    ///
    /// # Errors
    /// [`Error::Binary`] and [`Error::NotANode`], naming the field.
    fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Result<Self, Error>;
}

/// Reads one value from the start of `bytes`; returns it with the number of
/// bytes left over, which the format tolerates.
pub(crate) fn decode<T: Binary>(bytes: &[u8], at: &At<'_>) -> Result<(T, usize), Error> {
    let mut reader = Reader { bytes, position: 0 };
    let value = T::read(&mut reader, at)?;
    Ok((value, reader.remaining()))
}

impl Reader<'_> {
    fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    fn error(&self, at: &At<'_>, cause: String) -> Error {
        Error::Binary {
            field: at.to_string(),
            cause,
            offset: self.position,
        }
    }

    fn take<const N: usize>(&mut self, at: &At<'_>) -> Result<[u8; N], Error> {
        let bytes = self.bytes[self.position..].first_chunk().ok_or_else(|| {
            let cause = format!("ends after {} of {N} bytes", self.remaining());
            self.error(at, cause)
        })?;
        self.position += N;
        Ok(*bytes)
    }

    fn node<D: Domain>(&mut self, at: &At<'_>) -> Result<D, Error> {
        D::from_bytes(self.take(at)?).map_err(|cause| Error::NotANode {
            field: at.to_string(),
            cause,
        })
    }
}

/// Reads the named fields in order into a struct (or struct variant).
macro_rules! read_fields {
    ($reader:ident, $at:ident, $($path:ident)::+ { $($field:ident),+ $(,)? }) => {{
        $(let $field = Binary::read($reader, &$at.field(stringify!($field)))?;)+
        $($path)::+ { $($field),+ }
    }};
}

impl Binary for u32 {
    const MIN_BYTES: usize = 4;

    fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Result<Self, Error> {
        reader.take(at).map(Self::from_le_bytes)
    }
}

impl Binary for u64 {
    const MIN_BYTES: usize = 8;

    fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Result<Self, Error> {
        reader.take(at).map(Self::from_le_bytes)
    }
}

impl Binary for PoseidonDomain {
    const MIN_BYTES: usize = NODE_BYTES;

    fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Result<Self, Error> {
        reader.node(at)
    }
}

impl Binary for Sha256Domain {
    const MIN_BYTES: usize = NODE_BYTES;

    fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Result<Self, Error> {
        reader.node(at)
    }
}

impl<T: Binary> Binary for Vec<T> {
    const MIN_BYTES: usize = 8;

    fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Result<Self, Error> {
        let count = u64::read(reader, at)?;
        let room = reader.remaining() / T::MIN_BYTES;
        let count = usize::try_from(count)
            .ok()
            .filter(|&count| count <= room)
            .ok_or_else(|| {
                let cause = format!(
                    "claims {count} items, but the {} bytes left hold at most {room}",
                    reader.remaining()
                );
                reader.error(at, cause)
            })?;
        let mut items = Self::with_capacity(count);
        for i in 0..count {
            items.push(T::read(reader, &at.index(i))?);
        }
        Ok(items)
    }
}

impl<D: Domain + Binary> Binary for PathElement<D> {
    const MIN_BYTES: usize = 16;

    fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Result<Self, Error> {
        Ok(read_fields!(reader, at, PathElement { hashes, index }))
    }
}

impl<D: Domain + Binary> Binary for InclusionPath<D> {
    const MIN_BYTES: usize = 8;

    fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Result<Self, Error> {
        Ok(read_fields!(reader, at, InclusionPath { path }))
    }
}

impl<D: Domain + Binary> Binary for ProofData<D> {
    const MIN_BYTES: usize = 4 + 8 + 2 * NODE_BYTES;

    fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Result<Self, Error> {
        let tag = u32::read(reader, at)?;
        Ok(match tag {
            0 => read_fields!(reader, at, Self::Single { root, leaf, path }),
            1 => read_fields!(
                reader,
                at,
                Self::Sub {
                    base_proof,
                    sub_proof,
                    root,
                    leaf
                }
            ),
            2 => read_fields!(
                reader,
                at,
                Self::Top {
                    base_proof,
                    sub_proof,
                    top_proof,
                    root,
                    leaf
                }
            ),
            _ => {
                let cause = format!("has variant {tag}; 0 (Single), 1 (Sub) and 2 (Top) exist");
                return Err(reader.error(at, cause));
            }
        })
    }
}

impl<D: Domain + Binary> Binary for MerkleProof<D> {
    const MIN_BYTES: usize = ProofData::<D>::MIN_BYTES;

    fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Result<Self, Error> {
        Ok(read_fields!(reader, at, MerkleProof { data }))
    }
}

impl Binary for post::SectorProof {
    const MIN_BYTES: usize = 8 + 2 * NODE_BYTES;

    fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Result<Self, Error> {
        Ok(read_fields!(
            reader,
            at,
            Self {
                inclusion_proofs,
                comm_c,
                comm_r_last
            }
        ))
    }
}

impl Binary for post::VanillaProof {
    const MIN_BYTES: usize = 8;

    fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Result<Self, Error> {
        Ok(read_fields!(reader, at, Self { sectors }))
    }
}

impl Binary for post::FallbackPoStSectorProof {
    const MIN_BYTES: usize = 8 + NODE_BYTES + 8;

    fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Result<Self, Error> {
        Ok(read_fields!(
            reader,
            at,
            Self {
                sector_id,
                comm_r,
                vanilla_proof
            }
        ))
    }
}

impl Binary for snap::ChallengeProof {
    const MIN_BYTES: usize = 3 * MerkleProof::<PoseidonDomain>::MIN_BYTES;

    fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Result<Self, Error> {
        Ok(read_fields!(
            reader,
            at,
            Self {
                proof_r_old,
                proof_d_new,
                proof_r_new
            }
        ))
    }
}

impl Binary for snap::PartitionProof {
    const MIN_BYTES: usize = NODE_BYTES + 8 + 8;

    fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Result<Self, Error> {
        Ok(read_fields!(
            reader,
            at,
            Self {
                comm_c,
                apex_leafs,
                challenge_proofs
            }
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>() -> At<'a> {
        At::root("x")
    }

    #[test]
    fn a_claimed_length_is_held_against_the_bytes() {
        for claim in [2u64, 10_000_000_000, u64::MAX] {
            let mut bytes = claim.to_le_bytes().to_vec();
            bytes.extend([0; 40]);
            let error = decode::<Vec<PoseidonDomain>>(&bytes, &at()).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(&format!("claims {claim} items")), "{text}");
            assert_eq!(error.code(), "BAD_VANILLA_PROOF");
        }
        let mut bytes = 1u64.to_le_bytes().to_vec();
        bytes.extend([0; 40]);
        let (nodes, rest) = decode::<Vec<PoseidonDomain>>(&bytes, &at()).unwrap();
        assert_eq!((nodes.len(), rest), (1, 8));
    }

    #[test]
    fn errors_name_the_path() {
        let mut bytes = 1u64.to_le_bytes().to_vec(); // one element
        bytes.extend(1u64.to_le_bytes()); // with one hash
        bytes.extend([0xff; 32]);
        bytes.extend(0u64.to_le_bytes());
        let error = decode::<InclusionPath<PoseidonDomain>>(&bytes, &at()).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("x.path[0].hashes[0]: not a canonical field element"),
            "{error}"
        );
    }

    #[test]
    fn an_unknown_variant_is_named() {
        let mut bytes = vec![7, 0, 0, 0];
        bytes.extend([0; 100]);
        let error = decode::<MerkleProof<PoseidonDomain>>(&bytes, &at()).unwrap_err();
        assert!(
            error.to_string().starts_with("x.data: has variant 7"),
            "{error}"
        );
    }
}
