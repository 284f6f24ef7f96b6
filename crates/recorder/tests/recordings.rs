//! The committed circuits up to 8 MiB: recorded anew, byte for byte; and their expanded
//! matrices against a constraint system that shares no code with the recorder.

use bellpepper_core::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use filecoin::{CircuitId, SectorSize};
use r1cs::{CompiledCircuit, Fr, Matrix};
use sha2::{Digest, Sha256};

fn small_circuits() -> impl Iterator<Item = CircuitId> {
    CircuitId::all().filter(|id| id.size <= SectorSize::MiB8)
}

#[test]
fn recording_anew_gives_the_same_bytes() {
    for id in small_circuits() {
        let (circuit, _) = recorder::record(id).unwrap();
        // Not assert_eq: nobody wants to read the bytes.
        assert!(
            circuit.to_bytes() == id.compiled_bytes(),
            "{id}: the committed file differs from a fresh recording; run scripts/record-circuits"
        );
    }
}

/// One matrix in the form of CSR, hashed while it grows.
struct HashedMatrix {
    hasher: Sha256,
    terms: u64,
}

impl HashedMatrix {
    fn new() -> Self {
        Self {
            hasher: Sha256::new(),
            terms: 0,
        }
    }

    fn row(&mut self, terms: impl Iterator<Item = (u32, Fr)>) {
        for (column, coefficient) in terms {
            self.hasher.update(column.to_le_bytes());
            self.hasher.update(coefficient.to_bytes_le());
            self.terms += 1;
        }
        self.hasher.update(self.terms.to_le_bytes());
    }

    fn finish(self) -> (u64, [u8; 32]) {
        (self.terms, self.hasher.finalize().into())
    }
}

/// Collects rows directly: no namespaces, no dictionary, no templates.
struct Plain {
    /// Inputs the circuit will have in the end: aux columns come after them.
    expected_inputs: usize,
    inputs: usize,
    aux: usize,
    rows: usize,
    matrices: [HashedMatrix; 3],
}

impl ConstraintSystem<Fr> for Plain {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.aux += 1;
        Ok(Variable::new_unchecked(Index::Aux(self.aux - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs += 1;
        Ok(Variable::new_unchecked(Index::Input(self.inputs - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
        LB: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
        LC: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
    {
        let zero = LinearCombination::zero;
        let inputs = self.expected_inputs;
        for (matrix, combination) in self
            .matrices
            .iter_mut()
            .zip([a(zero()), b(zero()), c(zero())])
        {
            let mut terms: Vec<(u32, Fr)> = combination
                .iter()
                .filter(|(_, coefficient)| !bool::from(ff::Field::is_zero(*coefficient)))
                .map(|(variable, &coefficient)| {
                    let column = match variable.get_unchecked() {
                        Index::Input(i) => i,
                        Index::Aux(i) => inputs + i,
                    };
                    (u32::try_from(column).expect("at most 2^28"), coefficient)
                })
                .collect();
            terms.sort_by_key(|t| t.0);
            matrix.row(terms.into_iter());
        }
        self.rows += 1;
    }

    fn push_namespace<NR: Into<String>, N: FnOnce() -> NR>(&mut self, _: N) {}

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}

#[test]
fn expanded_matrices_are_those_of_a_plain_recording() {
    for id in small_circuits() {
        let circuit = CompiledCircuit::from_bytes(id.compiled_bytes()).unwrap();
        let shape = circuit.shape();
        let mut plain = Plain {
            expected_inputs: shape.inputs,
            inputs: 1,
            aux: 0,
            rows: 0,
            matrices: [(); 3].map(|()| HashedMatrix::new()),
        };
        recorder::circuits::synthesize_into(id, &mut plain).unwrap();
        let counts = (plain.rows, plain.inputs, plain.aux);
        assert_eq!(counts, (shape.constraints, shape.inputs, shape.aux), "{id}");
        for (m, matrix) in Matrix::ALL.into_iter().zip(plain.matrices) {
            let csr = circuit.to_csr(m);
            let mut expanded = HashedMatrix::new();
            for range in csr.starts.windows(2) {
                expanded.row((range[0]..range[1]).map(|t| {
                    let t = usize::try_from(t).unwrap();
                    (
                        csr.columns[t],
                        *circuit.dictionary().value(csr.coefficients[t]),
                    )
                }));
            }
            assert_eq!(expanded.finish(), matrix.finish(), "{id}, matrix {m:?}");
        }
    }
}

/// The streaming digest that `recorder check` compares for the large sizes notices any
/// changed row.
#[test]
fn row_digests_tell_circuits_apart() {
    let digests: std::collections::HashSet<[u8; 32]> = small_circuits()
        .filter(|id| id.size == SectorSize::KiB2)
        .map(|id| {
            let bytes = id.compiled_bytes();
            recorder::digest_of(&CompiledCircuit::from_bytes(bytes).unwrap())
        })
        .collect();
    assert_eq!(digests.len(), 4);

    let one = (r1cs::Variable::ONE, Fr::from(1));
    let two = (r1cs::Variable::ONE, Fr::from(2));
    let rows: [[&[(r1cs::Variable, Fr)]; 3]; 5] = [
        [&[one], &[], &[]],
        [&[], &[one], &[]],
        [&[], &[], &[one]],
        [&[two], &[], &[]],
        [&[], &[], &[]],
    ];
    let digests: std::collections::HashSet<[u8; 32]> = rows
        .into_iter()
        .map(|[a, b, c]| {
            let mut builder = r1cs::Builder::new();
            builder.enforce(a, b, c);
            recorder::digest_of(&builder.finish().unwrap())
        })
        .collect();
    assert_eq!(digests.len(), 5);
}
