//! A Groth16 proof and its bytes.

use blstrs::{G1Affine, G2Affine};
use group::prime::PrimeCurveAffine;

use crate::error::Error;

/// Bytes of a compressed G1 point.
const G1_BYTES: usize = 48;
/// Bytes of a compressed G2 point.
const G2_BYTES: usize = 96;

/// A Groth16 proof: A and C in G1, B in G2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// A = α + Σ w_j·a_j + r·δ.
    pub a: G1Affine,
    /// B = β + Σ w_j·b_j + s·δ.
    pub b: G2Affine,
    /// C, which ties A and B to the auxiliary variables and to H.
    pub c: G1Affine,
}

impl Proof {
    /// Bytes of a proof: compressed A, B, C in this order.
    pub const BYTES: usize = 2 * G1_BYTES + G2_BYTES;

    /// The bytes that verifiers of the network read: compressed A, B, C.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..G1_BYTES].copy_from_slice(&self.a.to_compressed());
        out[G1_BYTES..G1_BYTES + G2_BYTES].copy_from_slice(&self.b.to_compressed());
        out[G1_BYTES + G2_BYTES..].copy_from_slice(&self.c.to_compressed());
        out
    }

    /// Reads a proof and checks that its points are finite and in the groups of prime order.
    ///
    /// # Errors
    /// [`Error::ProofLength`] unless there are exactly [`Self::BYTES`] bytes;
    /// [`Error::ProofPoint`] for the first point that is unusable.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().map_err(|_| Error::ProofLength {
            found: bytes.len(),
            expected: Self::BYTES,
        })?;
        let (a, rest) = bytes
            .split_first_chunk::<G1_BYTES>()
            .expect("invariant: a proof is longer than A");
        let (b, c) = rest
            .split_first_chunk::<G2_BYTES>()
            .expect("invariant: a proof is longer than A and B");
        let c: &[u8; G1_BYTES] = c
            .try_into()
            .expect("invariant: C is what A and B leave of a proof");
        Ok(Proof {
            a: usable(G1Affine::from_compressed(a).into(), "A")?,
            b: usable(G2Affine::from_compressed(b).into(), "B")?,
            c: usable(G1Affine::from_compressed(c).into(), "C")?,
        })
    }
}

/// Refuses what is not a point of the group, and the point at infinity, which an honest proof
/// holds with probability 2^−255.
fn usable<P: PrimeCurveAffine>(point: Option<P>, element: &'static str) -> Result<P, Error> {
    let fault = |reason| Error::ProofPoint { element, reason };
    let point = point
        .ok_or_else(|| fault("not the compressed encoding of a point of the prime-order group"))?;
    if bool::from(point.is_identity()) {
        return Err(fault("it is the point at infinity"));
    }
    Ok(point)
}

#[cfg(test)]
mod tests {
    use group::Curve;

    use super::*;

    fn proof() -> Proof {
        let g1 = G1Affine::generator();
        let g2 = G2Affine::generator();
        Proof {
            a: (g1 * blstrs::Scalar::from(5)).to_affine(),
            b: (g2 * blstrs::Scalar::from(7)).to_affine(),
            c: (-(g1 * blstrs::Scalar::from(11))).to_affine(),
        }
    }

    #[test]
    fn bytes_come_back_as_the_same_proof() {
        let bytes = proof().to_bytes();
        assert_eq!(bytes.len(), 192);
        assert_eq!(Proof::from_bytes(&bytes).unwrap(), proof());
    }

    #[test]
    fn other_lengths_are_refused() {
        let bytes = proof().to_bytes();
        for len in [0, 1, 191] {
            let error = Proof::from_bytes(&bytes[..len]).unwrap_err();
            assert!(matches!(error, Error::ProofLength { found, .. } if found == len));
        }
        assert!(Proof::from_bytes(&[bytes, bytes].concat()).is_err());
    }

    #[test]
    fn each_unusable_point_is_named() {
        for (element, at, g2) in [("A", 0, false), ("B", 48, true), ("C", 144, false)] {
            let named = |bytes: &[u8]| match Proof::from_bytes(bytes).unwrap_err() {
                Error::ProofPoint { element: found, .. } => found == element,
                _ => false,
            };
            let mut infinity = proof().to_bytes();
            infinity[at..at + if g2 { 96 } else { 48 }].fill(0);
            infinity[at] = 0xc0;
            assert!(named(&infinity));

            let mut uncompressed = proof().to_bytes();
            uncompressed[at] &= 0x7f;
            assert!(named(&uncompressed));

            // A coordinate of p or more.
            let mut large = proof().to_bytes();
            large[at..at + 48].fill(0xff);
            large[at] = 0x9f;
            assert!(named(&large));
        }
    }

    #[test]
    fn a_point_outside_the_subgroup_is_refused() {
        // The smallest x whose point on E: y² = x³ + 4 exists without lying in the subgroup.
        let mut bytes = proof().to_bytes();
        let outside = (0_u8..=255)
            .find_map(|x| {
                let mut encoded = [0; 48];
                encoded[0] = 0x80;
                encoded[47] = x;
                let point: Option<G1Affine> = G1Affine::from_compressed_unchecked(&encoded).into();
                point
                    .filter(|p| bool::from(p.is_on_curve()) && !bool::from(p.is_torsion_free()))?;
                Some(encoded)
            })
            .unwrap();
        bytes[..48].copy_from_slice(&outside);
        assert!(Proof::from_bytes(&bytes).is_err());
    }
}
