//! From a witness to a proof that is known to verify.

use group::Curve;
use r1cs::{CompiledCircuit, PackedWitness};

use crate::backend::{Backend, BackendError, GroupSums, PhaseTimes};
use crate::blinding::Blinding;
use crate::error::Error;
use crate::key::{ProvingKey, VerifyingKey};
use crate::proof::Proof;
use crate::verify::{PreparedVerifyingKey, verify};

/// Makes a proof and verifies it; a proof that does not verify is never returned.
///
/// Equal blinding, witness and key give the proof that bellperson makes, byte for byte, also
/// when the key is a prepared one.
///
/// # Errors
/// [`Error::Backend`] when the sums cannot be computed, or a prepared key is another circuit's; [`Error::Unsatisfied`] when the proof
/// does not verify because the witness breaks a row, which is then named;
/// [`Error::ProofRejected`] when it does not verify and the witness is not to blame;
/// [`Error::InputCount`] when `verifying_key` is another circuit's.
pub fn prove(
    backend: &dyn Backend,
    circuit: &CompiledCircuit,
    key: &ProvingKey,
    verifying_key: &PreparedVerifyingKey,
    witness: &PackedWitness,
    blinding: Blinding,
) -> Result<(Proof, PhaseTimes), Error> {
    let (sums, mut times) = sums(backend, circuit, key, witness)?;
    let (proof, finishing) = finish(circuit, key, verifying_key, witness, &sums, blinding)?;
    for (phase, time) in finishing.iter() {
        times.record(phase, time);
    }
    Ok((proof, times))
}

/// What [`prove`] does on the device.
///
/// # Errors
/// [`Error::Backend`].
pub fn sums(
    backend: &dyn Backend,
    circuit: &CompiledCircuit,
    key: &ProvingKey,
    witness: &PackedWitness,
) -> Result<(GroupSums, PhaseTimes), Error> {
    key.check_circuit(circuit).map_err(BackendError::from)?;
    Ok(backend.sums(circuit, key, witness)?)
}

/// What [`prove`] does after the device: makes the proof from its sums and verifies it. Apart, so that a
/// device that has handed over its sums can go on with the next witness.
///
/// # Errors
/// As [`prove`], without [`Error::Backend`].
pub fn finish(
    circuit: &CompiledCircuit,
    key: &ProvingKey,
    verifying_key: &PreparedVerifyingKey,
    witness: &PackedWitness,
    sums: &GroupSums,
    blinding: Blinding,
) -> Result<(Proof, PhaseTimes), Error> {
    let mut times = PhaseTimes::default();
    let proof = times.measure("assemble", || assemble(key.vk(), sums, blinding));
    let verified = times.measure("verify", || {
        verify(verifying_key, &witness.inputs()[1..], &proof)
    })?;
    if verified {
        return Ok((proof, times));
    }
    circuit.check(witness).map_err(Error::Unsatisfied)?;
    Err(Error::ProofRejected)
}

/// A = α + Σ a + r·δ, B = β + Σ b + s·δ, C = Σ l + Σ h + s·A + r·B₁ − r·s·δ, where B₁ is B in G1.
// Taken by value: a blinding serves one proof.
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn assemble(vk: &VerifyingKey, sums: &GroupSums, blinding: Blinding) -> Proof {
    let Blinding { r, s } = blinding;
    let a = sums.a + vk.alpha_g1 + vk.delta_g1 * r;
    let b = sums.b_g2 + vk.beta_g2 + vk.delta_g2 * s;
    let b_g1 = sums.b_g1 + vk.beta_g1 + vk.delta_g1 * s;
    let c = sums.l + sums.h + a * s + b_g1 * r - vk.delta_g1 * (r * s);
    Proof {
        a: a.to_affine(),
        b: b.to_affine(),
        c: c.to_affine(),
    }
}
