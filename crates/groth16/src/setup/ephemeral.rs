//! Test keys that live in memory and end with the process.

use std::path::PathBuf;

use r1cs::{CompiledCircuit, PackedWitness};

use super::multiplier::FixedBaseMultiplier;
use super::queries::Queries;
use super::sink::MemorySink;
use super::trapdoor::{Trapdoor, stream, wide_scalar};
use super::write::Writer;
use crate::backend::{Backend, PhaseTimes};
use crate::blinding::Blinding;
use crate::error::Error;
use crate::key::{
    KeyCounts, KeyError, KeyForm, MemoryFile, PARAMETER, PREPARED, PreparedHeader, ProvingKey,
};
use crate::progress::Progress;
use crate::proof::Proof;
use crate::prove::prove;
use crate::verify::PreparedVerifyingKey;

/// Which key to make in memory.
#[derive(Clone, Copy, Debug)]
pub struct EphemeralRequest<'a> {
    /// Name of the circuit, for messages: `porep-2k`.
    pub circuit: &'a str,
    /// The seed that every secret follows from.
    pub seed: u64,
    /// What its vectors hold.
    pub form: KeyForm,
}

/// A test key in memory: whoever knows the seed can forge proofs for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EphemeralKey {
    /// The key, with its verifying key. Its file is memory that nobody can change, and is
    /// freed with the last clone.
    pub key: ProvingKey,
    /// The seed that its secrets follow from.
    pub seed: u64,
}

impl EphemeralKey {
    /// Makes and verifies a proof whose blinding follows from `seed`: the same bytes again on any device
    /// and with the key's other form. For comparisons of those: with blinding that others know a proof
    /// hides nothing, which is why only test keys have this.
    ///
    /// r and s are drawn as a [`Trapdoor`]'s secrets are, in this order, with `"cuzk test blind1"`
    /// for the purpose.
    ///
    /// # Errors
    /// As [`prove`].
    pub fn prove_repeatably(
        &self,
        backend: &dyn Backend,
        circuit: &CompiledCircuit,
        witness: &PackedWitness,
        seed: u64,
    ) -> Result<(Proof, PhaseTimes), Error> {
        let mut rng = stream(b"cuzk test blind1", seed);
        let r = wide_scalar(&mut rng);
        let s = wide_scalar(&mut rng);
        let verifying_key = PreparedVerifyingKey::from(self.key.vk());
        let blinding = Blinding { r, s };
        prove(
            backend,
            circuit,
            &self.key,
            &verifying_key,
            witness,
            blinding,
        )
    }
}

/// Makes a test key of `circuit` in memory. In the published form it has the bytes that
/// [`generate`](super::generate) would write; there is no digest and no side file. Uses all
/// threads beside the multiplier.
///
/// Takes the key's length ([`KeyCounts::params_bytes`] or [`KeyCounts::prepared_bytes`]), and
/// while it runs what [`generate`](super::generate) needs besides.
///
/// # Errors
/// [`KeyError`]: no memory, a device that fails, or a variable of the circuit that occurs in no
/// row.
pub fn generate_ephemeral(
    circuit: &CompiledCircuit,
    request: &EphemeralRequest<'_>,
    multiplier: &dyn FixedBaseMultiplier,
    progress: &dyn Progress,
) -> Result<EphemeralKey, KeyError> {
    let counts = KeyCounts::of(circuit);
    let label = PathBuf::from(format!("memory:{}", request.circuit));
    let (bytes, kind) = match request.form {
        KeyForm::Published => (counts.params_bytes(), PARAMETER),
        KeyForm::Prepared => (counts.prepared_bytes(), PREPARED),
    };
    let secrets = Trapdoor::from_seed(request.seed, circuit.shape().domain());
    // Getting tens of gigabytes of memory takes seconds, of one thread.
    let (file, queries) = rayon::join(
        || MemoryFile::create(&label, bytes),
        || Queries::new(circuit, &secrets, request.form, progress),
    );
    let (mut file, queries) = (file?, queries?);
    let mut sink = MemorySink::new(&mut file);
    let writer = Writer {
        queries: &queries,
        secrets: &secrets,
        counts: &counts,
        multiplier,
        progress,
    };
    match request.form {
        KeyForm::Published => writer.published(&mut sink)?,
        KeyForm::Prepared => {
            let header = PreparedHeader::of_test_key(circuit.digest(), request.seed);
            writer.prepared(&header, &mut sink)?
        }
    };
    assert_eq!(
        sink.missing(),
        0,
        "invariant: all counted points are written"
    );
    drop(queries);
    Ok(EphemeralKey {
        key: ProvingKey::of(file.seal(kind)?, &counts)?,
        seed: request.seed,
    })
}

#[cfg(test)]
mod tests {
    use blstrs::{G1Affine, G2Affine, Scalar};

    use super::super::tests::Plain;
    use super::*;
    use crate::BackendError;
    use crate::setup::{CpuFixedBase, SetupRequest, generate};

    const REQUEST: EphemeralRequest<'_> = EphemeralRequest {
        circuit: "chain",
        seed: 7,
        form: KeyForm::Published,
    };

    /// A multiplier with a batch of its own, which may fail in one of the groups.
    struct Batches {
        cpu: CpuFixedBase,
        batch: usize,
        g2_fails: bool,
    }

    impl FixedBaseMultiplier for Batches {
        fn g1(&self, scalars: &[Scalar], out: &mut [G1Affine]) -> Result<(), BackendError> {
            self.cpu.g1(scalars, out)
        }

        fn g2(&self, scalars: &[Scalar], out: &mut [G2Affine]) -> Result<(), BackendError> {
            if self.g2_fails {
                return Err(BackendError::DomainSize { size: 3 });
            }
            self.cpu.g2(scalars, out)
        }

        fn batch(&self) -> usize {
            self.batch
        }
    }

    fn on(circuit: &CompiledCircuit, batch: usize, threads: usize) -> EphemeralKey {
        let multiplier = Batches {
            cpu: CpuFixedBase::new(&KeyCounts::of(circuit)),
            batch,
            g2_fails: false,
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap()
            .install(|| generate_ephemeral(circuit, &REQUEST, &multiplier, &()))
            .unwrap()
    }

    #[test]
    fn memory_holds_what_the_file_would_whatever_the_batches() {
        let circuit = Plain::chain(20).compile();
        let dir = tempfile::tempdir().unwrap();
        let request = SetupRequest {
            circuit: "chain",
            stem: "v28-chain",
            folder: dir.path(),
            seed: REQUEST.seed,
            cache: None,
        };
        let file = generate(&circuit, &request, &()).unwrap();
        let expected = std::fs::read(&file.params).unwrap();
        // Vectors have 23 points, in batches: of one, with and without a rest, in one.
        for (batch, threads) in [(1, 1), (5, 1), (5, 4), (23, 2), (1 << 20, 3), (0, 1)] {
            let made = on(&circuit, batch, threads);
            let bytes = made.key.file().slice(0, expected.len()).unwrap();
            assert!(bytes == expected, "batches of {batch}, {threads} threads");
            assert_eq!(made.key.stamp().size, expected.len() as u64);
            assert_eq!(made.key.form(), KeyForm::Published);
            assert_eq!(made.seed, REQUEST.seed);
        }
    }

    #[test]
    fn equal_keys_have_different_stamps() {
        let circuit = Plain::chain(3).compile();
        let (one, two) = (on(&circuit, 4, 1), on(&circuit, 4, 1));
        assert_ne!(one.key.stamp(), two.key.stamp());
    }

    #[test]
    fn a_device_that_fails_is_named() {
        let circuit = Plain::chain(3).compile();
        let multiplier = Batches {
            cpu: CpuFixedBase::new(&KeyCounts::of(&circuit)),
            batch: 4,
            g2_fails: true,
        };
        let error = generate_ephemeral(&circuit, &REQUEST, &multiplier, &()).unwrap_err();
        assert!(matches!(error, KeyError::Device { .. }), "{error}");
        assert!(error.to_string().starts_with("3 is not a domain's size"));
    }
}
