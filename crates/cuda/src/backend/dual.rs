//! The dual run: every stage of a proof on the CPU and on the GPU, compared value for value.

use blstrs::Scalar;
use ff::PrimeField;
use groth16::key::{KeyForm, ProvingKey};
use groth16::ntt::{Domain, bit_reverse};
use groth16::{Backend, BackendError, CpuBackend, coset_product, quotient};
use r1cs::{CompiledCircuit, Matrix, PackedWitness};

use super::GpuBackend;

/// Why a dual run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DualRunError {
    /// A stage could not be computed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The GPU computed something else than the CPU.
    #[error(
        "the GPU computed another {stage} than the CPU{}. Do not use this GPU for proving; report this with the output of `cuzk doctor gpu`",
        index.map_or(String::new(), |index| format!(", first at {index}"))
    )]
    Differs {
        /// The stage: `A·w`, `B·w`, `quotient`, or the sum over a section of the key.
        stage: &'static str,
        /// The first element that differs, of a vector.
        index: Option<usize>,
    },
}

/// Computes A·w, B·w, the quotient (of a prepared key its values on the coset) and the five sums on both,
/// and compares them.
///
/// # Errors
/// [`DualRunError::Differs`] names the first stage that differs; a device or key that fails.
pub fn dual_run(
    gpu: &GpuBackend,
    circuit: &CompiledCircuit,
    key: &ProvingKey,
    witness: &PackedWitness,
) -> Result<(), DualRunError> {
    let found = gpu
        .stages(circuit, key, witness)
        .map_err(BackendError::from)?;
    let (a, b) = evaluate(circuit, witness)?;
    same("A·w", &found.a, &a)?;
    same("B·w", &found.b, &b)?;
    let domain = Domain::new(circuit.shape().domain())?;
    let scalars = match key.form() {
        KeyForm::Published => quotient(&domain, a, b),
        KeyForm::Prepared => natural_order(&coset_product(&domain, a, b)),
    };
    let scalars: Vec<[u32; 8]> = scalars.iter().map(canonical).collect();
    same("quotient", &found.quotient, &scalars)?;
    let (expected, _) = CpuBackend::new().sums(circuit, key, witness)?;
    let found = found.sums;
    for (stage, same) in [
        ("sum h", found.h == expected.h),
        ("sum l", found.l == expected.l),
        ("sum a", found.a == expected.a),
        ("sum b_g1", found.b_g1 == expected.b_g1),
        ("sum b_g2", found.b_g2 == expected.b_g2),
    ] {
        if !same {
            return Err(DualRunError::Differs { stage, index: None });
        }
    }
    Ok(())
}

/// A·w and B·w on the domain: the circuit's rows, one row per input, zeros.
fn evaluate(
    circuit: &CompiledCircuit,
    witness: &PackedWitness,
) -> Result<(Vec<Scalar>, Vec<Scalar>), BackendError> {
    let (rows, size) = (circuit.shape().constraints, circuit.shape().domain());
    let mut a = vec![Scalar::default(); size];
    let mut b = a.clone();
    circuit.evaluate(Matrix::A, witness, &mut a[..rows])?;
    circuit.evaluate(Matrix::B, witness, &mut b[..rows])?;
    a[rows..rows + witness.inputs().len()].copy_from_slice(witness.inputs());
    Ok((a, b))
}

fn natural_order(values: &[Scalar]) -> Vec<Scalar> {
    let mut natural = vec![Scalar::default(); values.len()];
    bit_reverse(values, &mut natural);
    natural
}

fn canonical(value: &Scalar) -> [u32; 8] {
    let bytes = value.to_repr();
    std::array::from_fn(|i| {
        let word = &bytes[4 * i..4 * i + 4];
        u32::from_le_bytes([word[0], word[1], word[2], word[3]])
    })
}

fn same<T: PartialEq>(
    stage: &'static str,
    found: &[T],
    expected: &[T],
) -> Result<(), DualRunError> {
    if found.len() == expected.len() {
        let mut pairs = found.iter().zip(expected);
        match pairs.position(|(found, expected)| found != expected) {
            None => return Ok(()),
            index => return Err(DualRunError::Differs { stage, index }),
        }
    }
    Err(DualRunError::Differs { stage, index: None })
}
