//! The two kinds of 32-byte node that Filecoin's Merkle trees are made of.
//!
//! Both are read as scalars by the circuits, little-endian, so both are kept as
//! their 32 bytes with the invariant that those bytes are a canonical `Fr`
//! (below r = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001).

use std::fmt;

use blstrs::Scalar;
use ff::PrimeField;
use serde::de::{self, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of a tree node.
pub const NODE_BYTES: usize = 32;

/// Why 32 bytes are not a node. The text completes "`<field>`: …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// The little-endian number is not below the scalar field's modulus.
    #[error("not a canonical field element (the 32 little-endian bytes are not below r)")]
    NotCanonical,
    /// The digest was not reduced to 254 bits.
    #[error("not a 254-bit digest (the two top bits of the last byte must be clear)")]
    NotTruncated,
}

/// A 32-byte Merkle node: Poseidon ([`PoseidonDomain`]) or SHA-256 ([`Sha256Domain`]).
pub trait Domain:
    Copy + Eq + fmt::Debug + Send + Sync + Serialize + for<'de> Deserialize<'de> + 'static
{
    /// Takes the bytes if they are a valid node.
    ///
    /// # Errors
    /// [`DomainError`] if the invariant of the type does not hold.
    fn from_bytes(bytes: [u8; NODE_BYTES]) -> Result<Self, DomainError>;

    /// The node's bytes; as a number they are little-endian.
    fn as_bytes(&self) -> &[u8; NODE_BYTES];

    /// The node as a scalar (Montgomery form inside, as everywhere in `blstrs`).
    fn to_fr(&self) -> Scalar {
        Option::from(Scalar::from_repr(*self.as_bytes()))
            .expect("invariant: a node's bytes are a canonical Fr")
    }

    /// Whether all bytes are zero.
    fn is_zero(&self) -> bool {
        self.as_bytes().iter().all(|&b| b == 0)
    }
}

/// r as four little-endian 64-bit limbs.
const MODULUS: [u64; 4] = [
    0xffff_ffff_0000_0001,
    0x53bd_a402_fffe_5bfe,
    0x3339_d808_09a1_d805,
    0x73ed_a753_299d_7d48,
];

/// Whether 32 little-endian bytes are a number below r.
pub fn is_canonical_fr(bytes: &[u8; NODE_BYTES]) -> bool {
    for (limb, modulus) in bytes.chunks_exact(8).zip(MODULUS).rev() {
        let limb = u64::from_le_bytes(limb.try_into().expect("invariant: chunks of 8 bytes"));
        if limb != modulus {
            return limb < modulus;
        }
    }
    false
}

/// A canonical scalar: Poseidon hash, label, replica id, commitment of a replica.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PoseidonDomain([u8; NODE_BYTES]);

/// A SHA-256 digest whose two top bits are cleared (254 bits), or a data node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Sha256Domain([u8; NODE_BYTES]);

impl Domain for PoseidonDomain {
    fn from_bytes(bytes: [u8; NODE_BYTES]) -> Result<Self, DomainError> {
        if is_canonical_fr(&bytes) {
            Ok(Self(bytes))
        } else {
            Err(DomainError::NotCanonical)
        }
    }

    fn as_bytes(&self) -> &[u8; NODE_BYTES] {
        &self.0
    }
}

impl Domain for Sha256Domain {
    fn from_bytes(bytes: [u8; NODE_BYTES]) -> Result<Self, DomainError> {
        if bytes[NODE_BYTES - 1] & 0xc0 == 0 {
            Ok(Self(bytes))
        } else {
            Err(DomainError::NotTruncated)
        }
    }

    fn as_bytes(&self) -> &[u8; NODE_BYTES] {
        &self.0
    }
}

impl From<Scalar> for PoseidonDomain {
    fn from(value: Scalar) -> Self {
        Self(value.to_repr())
    }
}

macro_rules! domain_impls {
    ($domain:ident) => {
        impl From<$domain> for [u8; NODE_BYTES] {
            fn from(node: $domain) -> Self {
                node.0
            }
        }

        impl AsRef<[u8]> for $domain {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }

        /// The bytes in order, as hex.
        impl fmt::Display for $domain {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(self.0))
            }
        }

        impl fmt::Debug for $domain {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl Serialize for $domain {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serialize_bytes32(&self.0, serializer)
            }
        }

        impl<'de> Deserialize<'de> for $domain {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let bytes = deserialize_bytes32(deserializer)?;
                Self::from_bytes(bytes).map_err(de::Error::custom)
            }
        }
    };
}

domain_impls!(PoseidonDomain);
domain_impls!(Sha256Domain);

/// Writes 32 bytes as a tuple of numbers: an array in JSON, raw bytes in bincode.
fn serialize_bytes32<S: Serializer>(
    bytes: &[u8; NODE_BYTES],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut tuple = serializer.serialize_tuple(NODE_BYTES)?;
    for byte in bytes {
        tuple.serialize_element(byte)?;
    }
    tuple.end()
}

/// Reads 32 bytes as a tuple of numbers; any other length is an error that says so.
fn deserialize_bytes32<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<[u8; NODE_BYTES], D::Error> {
    struct Bytes32;

    impl<'de> Visitor<'de> for Bytes32 {
        type Value = [u8; NODE_BYTES];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of 32 numbers from 0 to 255")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut bytes = [0; NODE_BYTES];
            for (i, byte) in bytes.iter_mut().enumerate() {
                *byte = seq
                    .next_element()?
                    .ok_or_else(|| de::Error::invalid_length(i, &self))?;
            }
            Ok(bytes)
        }
    }

    deserializer.deserialize_tuple(NODE_BYTES, Bytes32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;

    fn modulus_bytes() -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, limb) in bytes.chunks_exact_mut(8).zip(MODULUS) {
            chunk.copy_from_slice(&limb.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn canonical_is_what_blstrs_accepts() {
        let minus_one = (-Scalar::ONE).to_repr();
        assert!(is_canonical_fr(&minus_one));
        assert!(is_canonical_fr(&[0; 32]));
        assert!(!is_canonical_fr(&modulus_bytes()));
        assert!(!is_canonical_fr(&[0xff; 32]));
        for bit in 0..256 {
            for base in [[0; 32], modulus_bytes(), minus_one] {
                let mut bytes = base;
                bytes[bit / 8] ^= 1 << (bit % 8);
                let accepted: Option<Scalar> = Scalar::from_repr(bytes).into();
                assert_eq!(is_canonical_fr(&bytes), accepted.is_some(), "bit {bit}");
            }
        }
    }

    #[test]
    fn every_truncated_digest_is_a_scalar() {
        let mut top = [0xff; 32];
        top[31] = 0x3f;
        let node = Sha256Domain::from_bytes(top).unwrap();
        assert_eq!(node.to_fr().to_repr(), top);
        for byte in [0x40, 0x80, 0xc0] {
            let mut bytes = [0; 32];
            bytes[31] = byte;
            assert_eq!(
                Sha256Domain::from_bytes(bytes),
                Err(DomainError::NotTruncated)
            );
        }
    }

    #[test]
    fn json_is_an_array_of_32_numbers_and_bincode_32_raw_bytes() {
        let node = PoseidonDomain::from(Scalar::from(258));
        let json = serde_json::to_string(&node).unwrap();
        assert_eq!(json, format!("[2,1{}]", ",0".repeat(30)));
        assert_eq!(serde_json::from_str::<PoseidonDomain>(&json).unwrap(), node);
        assert_eq!(bincode::serialize(&node).unwrap(), node.as_bytes());

        let short = serde_json::from_str::<PoseidonDomain>("[1,2]").unwrap_err();
        assert!(short.to_string().contains("invalid length 2"), "{short}");
        let long = format!("[0{}]", ",0".repeat(32));
        assert!(serde_json::from_str::<PoseidonDomain>(&long).is_err());
        let huge = format!("[0{}]", ",255".repeat(31));
        let error = serde_json::from_str::<PoseidonDomain>(&huge).unwrap_err();
        assert!(
            error.to_string().contains("not a canonical field element"),
            "{error}"
        );
    }
}
