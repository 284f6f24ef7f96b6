//! How much host memory a unit takes.

use groth16::DeviceKind;
use r1cs::CompiledCircuit;

/// Host memory that a unit of this circuit takes while it is worked on, bytes, beside its key.
pub fn unit_bytes(circuit: &CompiledCircuit, device: DeviceKind) -> u64 {
    if device == DeviceKind::Gpu {
        // The packed witness, and its copy in page-locked memory.
        return 2 * packed_bytes(circuit);
    }
    let shape = circuit.shape();
    let (domain, variables) = (shape.domain() as u64, (shape.inputs + shape.aux) as u64);
    // The witness before it is packed, or the three vectors of the quotient: 32 bytes an element.
    32 * (3 * domain).max(variables)
}

/// Bytes of a packed witness.
pub fn packed_bytes(circuit: &CompiledCircuit) -> u64 {
    let layout = circuit.layout();
    let dense = 32 * (circuit.shape().inputs + layout.dense_count()) as u64;
    dense + layout.bit_count() as u64 / 8
}
