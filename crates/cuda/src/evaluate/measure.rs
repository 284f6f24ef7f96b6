//! Times of evaluations, each value compared with the CPU's.

use blstrs::Scalar;
use ff::Field;
use r1cs::{CompiledCircuit, Matrix, PackedWitness};
use rayon::prelude::*;

use super::{EvaluatorPlan, Program, WitnessPlan};
use crate::device::{Device, Ledger, Phase, Stream};
use crate::error::{CudaError, Result};
use crate::measure::{Measurement, Measuring, Work, if_it_fits, times};

/// A·w and B·w of the circuits, for witnesses of arbitrary values.
///
/// # Errors
/// A device that fails, or whose values are wrong; a circuit that cannot be evaluated on it.
pub fn measure(device: &Device, measuring: &Measuring<'_>) -> Result<Vec<Measurement>> {
    let stream = device.stream()?;
    let mut all = Vec::new();
    for (name, circuit) in measuring.circuits {
        all.extend(evaluation(device, &stream, name, circuit, measuring.runs)?);
    }
    Ok(all)
}

fn evaluation(
    device: &Device,
    stream: &Stream,
    circuit_name: &str,
    circuit: &CompiledCircuit,
    runs: usize,
) -> Result<Option<Measurement>> {
    let name = format!("A w and B w of {circuit_name}");
    let unfit = |reason: String| CudaError::NotMeasured {
        what: name.clone(),
        reason,
    };
    let n = circuit.shape().domain();
    let mut ledger = Ledger::new("the measurement of evaluations");
    let witness_plan = WitnessPlan::new(circuit, &mut ledger);
    let program = Program::new(circuit).map_err(|error| unfit(error.to_string()))?;
    let evaluator_plan = EvaluatorPlan::new(program, &mut ledger);
    let [a, b] =
        ["a", "b"].map(|name| ledger.reserve(name, n, Phase::Evaluate.to(Phase::Transform)));
    let Some(arena) = if_it_fits(device.arena(&ledger))? else {
        return Ok(None);
    };
    let (a, b) = (arena.get(a), arena.get(b));
    let witness = arbitrary_witness(circuit).map_err(|error| unfit(error.to_string()))?;
    let buffers = witness_plan.bind(device, &arena)?;
    let evaluator = evaluator_plan.bind(device, &arena)?;
    buffers.upload(stream, &witness)?;
    buffers.unpack(stream)?;
    let (median_ms, least_ms) = times(stream, runs, || evaluator.run(stream, &buffers, a, b))?;
    for (matrix, found) in [(Matrix::A, a), (Matrix::B, b)] {
        let expected =
            expected(circuit, &witness, matrix).map_err(|error| unfit(error.to_string()))?;
        let mut values = vec![Scalar::ZERO; n];
        stream.download(found, &mut values)?;
        if values.par_iter().ne(&expected) {
            return Err(CudaError::WrongResult { what: name });
        }
    }
    Ok(Some(Measurement {
        name,
        log_size: n.trailing_zeros(),
        median_ms,
        least_ms,
        // Both vectors; what is read is small, and stays in the cache.
        work: Work::BytesWritten(2.0 * n as f64 * size_of::<Scalar>() as f64),
    }))
}

/// The matrix's rows times the witness, and what follows them in the vector.
fn expected(
    circuit: &CompiledCircuit,
    witness: &PackedWitness,
    matrix: Matrix,
) -> Result<Vec<Scalar>, r1cs::Error> {
    let rows = circuit.shape().constraints;
    let mut values = vec![Scalar::ZERO; circuit.shape().domain()];
    circuit.evaluate(matrix, witness, &mut values[..rows])?;
    // The row of every input, which only A has.
    if matrix == Matrix::A {
        values[rows..rows + witness.inputs().len()].copy_from_slice(witness.inputs());
    }
    Ok(values)
}

/// A witness of different values, which need not satisfy the circuit.
fn arbitrary_witness(circuit: &CompiledCircuit) -> Result<PackedWitness, r1cs::Error> {
    let layout = circuit.layout();
    let word = |i: u64| {
        let z = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (z ^ (z >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ z
    };
    let value = |i: u64| Scalar::from(word(2 * i)) * Scalar::from(word(2 * i + 1)).square();
    let mut bits: Vec<u64> = (0..layout.bit_count().div_ceil(64) as u64)
        .map(word)
        .collect();
    if let (Some(last), tail @ 1..) = (bits.last_mut(), layout.bit_count() % 64) {
        *last &= (1 << tail) - 1;
    }
    let dense = (0..layout.dense_count() as u64).into_par_iter().map(value);
    let inputs = 1..circuit.shape().inputs as u64;
    let inputs = std::iter::once(Scalar::ONE).chain(inputs.map(value));
    PackedWitness::from_parts(circuit, inputs.collect(), bits, dense.collect())
}
