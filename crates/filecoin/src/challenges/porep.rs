//! PoRep challenges: interactive, synthetic, non-interactive.

use blake2b_simd::Params;
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

use crate::PorepRequest;
use crate::domain::{Domain, PoseidonDomain};
use crate::registered::{RegisteredSealProof, SealVersion};

/// Most synthetic challenges a sector has; smaller sectors have as many as nodes.
const SYNTHETIC_CHALLENGES_MAX: u64 = 1 << 18;

/// Nonce of the ChaCha20 streams of synthetic challenges.
const SYNTHETIC_NONCE: [u8; 12] = *b"synth-porep\0";

/// What the challenges of a sealed sector follow from.
pub struct PorepChallenges<'a> {
    /// Version and sector size.
    pub proof_type: RegisteredSealProof,
    /// Replica id.
    pub replica_id: &'a PoseidonDomain,
    /// Commitment of the replica. Interactive challenges do not depend on it.
    pub comm_r: &'a PoseidonDomain,
    /// Interactive randomness. Non-interactive challenges do not depend on it.
    pub seed: &'a [u8; 32],
}

impl<'a> PorepChallenges<'a> {
    /// The challenges of a request.
    pub fn of(request: &'a PorepRequest) -> PorepChallenges<'a> {
        PorepChallenges {
            proof_type: request.proof_type,
            replica_id: &request.replica_id,
            comm_r: &request.comm_r,
            seed: &request.seed,
        }
    }

    /// Challenged nodes of a partition, each in 1..nodes, possibly repeated.
    pub fn partition(&self, partition: usize) -> Vec<u32> {
        let count = self.proof_type.size.porep().challenges;
        let first = (partition * count) as u32;
        let numbers = first..first + count as u32;
        match self.proof_type.version {
            SealVersion::V1 | SealVersion::V1_1 => {
                let prefix = Sha256::new()
                    .chain_update(self.replica_id)
                    .chain_update(self.seed);
                self.hashed(&prefix, numbers)
            }
            SealVersion::NonInteractive => {
                let prefix = Sha256::new()
                    .chain_update(b"filecoin.io|PoRep|1|NonInteractive|1")
                    .chain_update(self.replica_id)
                    .chain_update(self.comm_r);
                self.hashed(&prefix, numbers)
            }
            SealVersion::Synthetic => self.synthetic(numbers),
        }
    }

    /// SHA-256(prefix || number as u32 little-endian) for each number, as nodes.
    fn hashed(&self, prefix: &Sha256, numbers: std::ops::Range<u32>) -> Vec<u32> {
        numbers
            .map(|number| {
                let digest = prefix.clone().chain_update(number.to_le_bytes()).finalize();
                self.node(&digest.into())
            })
            .collect()
    }

    /// The sector fixes a long list of challenges (a stream keyed by replica id and comm_r, 32
    /// bytes each); the seed selects from it (another stream, an u32 index each).
    fn synthetic(&self, numbers: std::ops::Range<u32>) -> Vec<u32> {
        let list_length = self.proof_type.size.nodes().min(SYNTHETIC_CHALLENGES_MAX) as u32;
        let mut list = self.stream(
            b"filecoin.io|PoRep|1|Synthetic|1|Generation",
            self.comm_r.as_bytes(),
        );
        let mut selection = self.stream(b"filecoin.io|PoRep|1|Synthetic|1|Selection", self.seed);
        seek(&mut selection, numbers.start);
        numbers
            .map(|_| {
                let index = selection.next_u32() % list_length;
                seek(&mut list, index * 8);
                let mut bytes = [0; 32];
                list.fill_bytes(&mut bytes);
                self.node(&bytes)
            })
            .collect()
    }

    /// ChaCha20 with the key BLAKE2b-256(key = tag; replica id || value).
    fn stream(&self, tag: &[u8], value: &[u8; 32]) -> ChaCha20Rng {
        let key = Params::new()
            .hash_length(32)
            .key(tag)
            .to_state()
            .update(self.replica_id.as_ref())
            .update(value)
            .finalize();
        let mut seed = [0; 32];
        seed.copy_from_slice(key.as_bytes());
        let mut stream = ChaCha20Rng::from_seed(seed);
        let tail = SYNTHETIC_NONCE[4..].try_into();
        stream.set_stream(u64::from_le_bytes(tail.expect("invariant: 8 bytes")));
        seek(&mut stream, 0);
        stream
    }

    /// A 256-bit little-endian number as a node: modulo nodes - 1, plus 1. Node 0 is never challenged.
    fn node(&self, number: &[u8; 32]) -> u32 {
        let modulus = u128::from(self.proof_type.size.nodes() - 1);
        let remainder = number
            .rchunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().expect("invariant: 4 bytes")))
            .fold(0, |remainder: u128, word| {
                (remainder << 32 | u128::from(word)) % modulus
            });
        remainder as u32 + 1
    }
}

/// Moves the stream to its 32-bit word `word`.
///
/// The standard's ChaCha20 has a 32-bit block counter and a 96-bit nonce; this generator has a
/// 64-bit counter and a 64-bit nonce. The words lie in the same order, so the first four nonce
/// bytes are the upper half of the counter here.
fn seek(stream: &mut ChaCha20Rng, word: u32) {
    let head = SYNTHETIC_NONCE[..4].try_into();
    let upper = u32::from_le_bytes(head.expect("invariant: 4 bytes"));
    let block = u128::from(upper) << 32 | u128::from(word / 16);
    stream.set_word_pos(block << 4 | u128::from(word % 16));
}
