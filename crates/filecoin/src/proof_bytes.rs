//! The bytes of a result: the Groth16 proofs of all partitions, one after another.

use groth16::Proof;

use crate::error::Error;
use crate::registry::CircuitId;
use crate::request::Request;

/// Bytes of one Groth16 proof.
pub const PROOF_BYTES: usize = Proof::BYTES;

impl CircuitId {
    /// Bytes of a complete result of this kind: [`PROOF_BYTES`] per partition.
    /// (A non-interactive PoRep's result is an aggregate, which is another thing.)
    pub fn result_bytes(self) -> usize {
        self.partitions() * PROOF_BYTES
    }
}

/// The proofs in partition order as one byte string.
pub fn join(proofs: &[Proof]) -> Vec<u8> {
    proofs.iter().flat_map(Proof::to_bytes).collect()
}

/// Reads the result of `request` back into its proofs.
///
/// # Errors
/// [`Error::ProofLength`] unless there are exactly the request's partitions;
/// [`Error::ProofPoint`] for a proof whose points are not points.
pub fn split(request: &Request, bytes: &[u8]) -> Result<Vec<Proof>, Error> {
    let partitions = request.partitions();
    if bytes.len() != partitions * PROOF_BYTES {
        return Err(Error::ProofLength {
            actual: bytes.len(),
            expected: partitions * PROOF_BYTES,
            context: format!("{partitions} partitions of {}", request.proof_type()),
        });
    }
    bytes
        .chunks_exact(PROOF_BYTES)
        .enumerate()
        .map(|(partition, bytes)| {
            Proof::from_bytes(bytes).map_err(|source| Error::ProofPoint { partition, source })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::fixtures::fixture;
    use blstrs::{G1Affine, G2Affine, Scalar};
    use group::prime::PrimeCurveAffine;

    fn proof(n: u64) -> Proof {
        let scalar = Scalar::from(n);
        Proof {
            a: (G1Affine::generator() * scalar).into(),
            b: (G2Affine::generator() * scalar).into(),
            c: G1Affine::generator(),
        }
    }

    #[test]
    fn lengths_are_those_of_the_network() {
        let expected = [
            [192, 192, 192, 1920, 1920],
            [192, 768, 3072, 3072, 3072],
            [192; 5],
            [192; 5],
        ];
        for (id, expected) in CircuitId::all().zip(expected.as_flattened()) {
            assert_eq!(id.result_bytes(), *expected, "{id}");
        }
    }

    #[test]
    fn joined_proofs_split_again_in_order() {
        let request = fixture("8MiB/empty-sector-update-a").requests().remove(0);
        let proofs: Vec<Proof> = (1..=4).map(proof).collect();
        let bytes = join(&proofs);
        assert_eq!(bytes.len(), request.circuit_id().result_bytes());
        assert_eq!(split(&request, &bytes).unwrap(), proofs);
        for bad in [&bytes[..576], &bytes[..767], &[]] {
            assert_eq!(split(&request, bad).unwrap_err().code(), "PROOF_LENGTH");
        }
        let mut long = bytes.clone();
        long.push(0);
        assert_eq!(split(&request, &long).unwrap_err().code(), "PROOF_LENGTH");
        let mut flipped = bytes;
        flipped[2 * PROOF_BYTES + 1] ^= 1;
        let error = split(&request, &flipped).unwrap_err();
        assert!(
            error.to_string().starts_with("proof of partition 2"),
            "{error}"
        );
    }
}
