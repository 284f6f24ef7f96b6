//! A digest over the plain rows of a circuit, to compare recordings too large to keep.

use r1cs::CompiledCircuit;
use sha2::{Digest, Sha256};

use crate::recording::{Sink, Terms};

/// SHA-256 over, per row and for A, B, C: the number of terms with a non-zero coefficient
/// (4 bytes), then per term its kind (1 byte: 0 input, 1 aux), its index (4 bytes) and
/// its coefficient (32 bytes), all little-endian, sorted by kind and index. At the end
/// the numbers of rows, inputs and aux (8 bytes each).
#[derive(Default)]
pub struct RowDigest {
    hasher: Sha256,
    buffer: Vec<u8>,
    rows: u64,
    inputs: u64,
    aux: u64,
}

/// Bytes collected before they are hashed.
const CHUNK: usize = 1 << 16;

impl RowDigest {
    /// A digest of no rows.
    #[must_use]
    pub fn new() -> Self {
        Self {
            inputs: 1,
            ..Self::default()
        }
    }

    /// The digest.
    #[must_use]
    pub fn finish(mut self) -> [u8; 32] {
        for count in [self.rows, self.inputs, self.aux] {
            self.buffer.extend(count.to_le_bytes());
        }
        self.hasher.update(&self.buffer);
        self.hasher.finalize().into()
    }

    fn combination(&mut self, terms: &Terms) {
        let start = self.buffer.len();
        self.buffer.extend([0; 4]);
        let mut count = 0u32;
        let mut last = None;
        for (variable, coefficient) in terms {
            if bool::from(ff::Field::is_zero(coefficient)) {
                continue;
            }
            assert!(last < Some(variable), "terms are sorted and distinct");
            last = Some(variable);
            count += 1;
            let (kind, index) = match variable {
                r1cs::Variable::Input(i) => (0, i),
                r1cs::Variable::Aux(i) => (1, i),
            };
            self.buffer.push(kind);
            self.buffer.extend(index.to_le_bytes());
            self.buffer.extend(coefficient.to_bytes_le());
        }
        self.buffer[start..start + 4].copy_from_slice(&count.to_le_bytes());
    }
}

impl Sink for RowDigest {
    fn input(&mut self) {
        self.inputs += 1;
    }

    fn aux(&mut self) {
        self.aux += 1;
    }

    fn row(&mut self, a: &Terms, b: &Terms, c: &Terms) {
        [a, b, c]
            .into_iter()
            .for_each(|terms| self.combination(terms));
        self.rows += 1;
        if self.buffer.len() >= CHUNK {
            self.hasher.update(&self.buffer);
            self.buffer.clear();
        }
    }

    fn begin(&mut self) {}

    fn end(&mut self) {}
}

/// The same digest of a compiled circuit's expanded rows.
#[must_use]
pub fn digest_of(circuit: &CompiledCircuit) -> [u8; 32] {
    let mut digest = RowDigest::new();
    circuit.for_each_row(|row| digest.row(row.a, row.b, row.c));
    digest.inputs = circuit.shape().inputs as u64;
    digest.aux = circuit.shape().aux as u64;
    digest.finish()
}
