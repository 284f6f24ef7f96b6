//! A proof of a small circuit on the GPU, compared with the CPU's and verified.

use std::time::{Duration, Instant};

use groth16::key::{KeyCounts, KeyError, ProvingKey};
use groth16::setup::{self, SetupRequest};
use groth16::{Backend, BackendError, Blinding, CpuBackend, PreparedVerifyingKey};

use super::GpuBackend;
use super::sample::sample;

/// Steps and bits a step of the self-test's circuit: a domain of 2^10, with both kinds of
/// variables in every query.
const STEPS: usize = 60;
const BITS: usize = 8;

/// A self-test that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelfTest {
    /// Rows of its circuit.
    pub constraints: usize,
    /// From the first call to the first verified proof: kernels loaded, key copied.
    pub first: Duration,
    /// A second proof.
    pub second: Duration,
}

/// Why a self-test failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelfTestError {
    /// The test itself could not be made.
    #[error(
        "the self-test could not be prepared: {0}. Check the folder for temporary files (TMPDIR)"
    )]
    Preparation(String),
    /// The device refused or failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The device computed something else than the CPU.
    #[error(
        "the GPU computed another {sum} than the CPU. Do not use this GPU for proving; report this with the output of `cuzk doctor gpu`"
    )]
    Differs {
        /// The sum.
        sum: &'static str,
    },
    /// The proof was not accepted.
    #[error(transparent)]
    Prove(#[from] groth16::Error),
}

impl From<KeyError> for SelfTestError {
    fn from(error: KeyError) -> Self {
        SelfTestError::Preparation(error.to_string())
    }
}

/// Proves a small circuit twice, with a key made for the purpose; compares every sum with the
/// CPU's, and verifies.
///
/// # Errors
/// [`SelfTestError`]: whatever goes wrong, above all a sum that differs.
pub fn self_test(backend: &GpuBackend) -> Result<SelfTest, SelfTestError> {
    let prepare = |error: &dyn std::error::Error| SelfTestError::Preparation(error.to_string());
    let (circuit, witness) = sample(STEPS, BITS, 1).map_err(|error| prepare(&error))?;
    let folder = tempfile::tempdir().map_err(|error| prepare(&error))?;
    let request = SetupRequest {
        circuit: "self-test",
        stem: "self-test",
        folder: folder.path(),
        seed: 1,
        cache: None,
    };
    let files = setup::generate(&circuit, &request, &())?;
    let key = ProvingKey::open(&files.params, &KeyCounts::of(&circuit))?;
    let expected = CpuBackend::new().sums(&circuit, &key, &witness)?.0;

    let start = Instant::now();
    let found = backend.sums(&circuit, &key, &witness)?.0;
    for (sum, same) in [
        ("h", found.h == expected.h),
        ("l", found.l == expected.l),
        ("a", found.a == expected.a),
        ("b_g1", found.b_g1 == expected.b_g1),
        ("b_g2", found.b_g2 == expected.b_g2),
    ] {
        if !same {
            return Err(SelfTestError::Differs { sum });
        }
    }
    let first = start.elapsed();
    let start = Instant::now();
    let pvk = PreparedVerifyingKey::from(key.vk());
    groth16::prove(backend, &circuit, &key, &pvk, &witness, Blinding::random()?)?;
    Ok(SelfTest {
        constraints: circuit.shape().constraints,
        first,
        second: start.elapsed(),
    })
}
