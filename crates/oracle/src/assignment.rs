//! A constraint system that keeps only the values.

use bellpepper_core::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use r1cs::Fr;

use ff::Field;

/// The assignment a circuit makes while it is synthesised: every allocated value in the order of
/// allocation, inputs and auxiliary variables apart. Constraints are dropped unread.
///
/// Numbering is that of the circuit's compiled form: inputs start with the constant one, and
/// [`extend`](ConstraintSystem::extend) joins sub-circuits synthesised on several threads in the
/// order in which they would have been synthesised on one.
#[derive(Debug)]
pub struct Assignment {
    /// Input values in Montgomery form, the constant one first.
    pub inputs: Vec<Fr>,
    /// Auxiliary values in Montgomery form.
    pub aux: Vec<Fr>,
}

impl Assignment {
    /// The assignment of an empty circuit: the constant one, with room for `inputs` and `aux`
    /// values.
    #[must_use]
    pub fn with_capacity(inputs: usize, aux: usize) -> Self {
        let mut assignment = Self {
            inputs: Vec::with_capacity(inputs),
            aux: Vec::with_capacity(aux),
        };
        assignment.inputs.push(Fr::ONE);
        assignment
    }
}

impl ConstraintSystem<Fr> for Assignment {
    type Root = Self;

    // The circuits that split their synthesis over threads allocate the constant one of each part
    // themselves.
    fn new() -> Self {
        Self {
            inputs: Vec::new(),
            aux: Vec::new(),
        }
    }

    fn alloc<F, A, AR>(&mut self, _annotation: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.aux.push(value()?);
        Ok(Variable::new_unchecked(Index::Aux(self.aux.len() - 1)))
    }

    fn alloc_input<F, A, AR>(
        &mut self,
        _annotation: A,
        value: F,
    ) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(value()?);
        Ok(Variable::new_unchecked(Index::Input(self.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _annotation: A, _a: LA, _b: LB, _c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
        LB: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
        LC: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
    {
    }

    fn push_namespace<NR, N>(&mut self, _name: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }

    fn is_extensible() -> bool {
        true
    }

    fn extend(&mut self, other: &Self) {
        // The part's own constant one is not a variable of the whole.
        self.inputs.extend_from_slice(&other.inputs[1..]);
        self.aux.extend_from_slice(&other.aux);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocate(cs: &mut Assignment, input: u64, aux: u64) {
        cs.alloc_input(|| "input", || Ok(Fr::from(input))).unwrap();
        cs.alloc(|| "aux", || Ok(Fr::from(aux))).unwrap();
    }

    #[test]
    fn joins_parts_as_one_pass_would() {
        let mut whole = Assignment::with_capacity(0, 0);
        let mut joined = Assignment::with_capacity(0, 0);
        for part in 0..3u64 {
            let mut piece = Assignment::new();
            piece.alloc_input(|| "one", || Ok(Fr::ONE)).unwrap();
            for value in 0..part {
                allocate(&mut whole, 10 * part + value, 100 * part + value);
                allocate(&mut piece, 10 * part + value, 100 * part + value);
            }
            joined.extend(&piece);
        }
        assert_eq!(joined.inputs, whole.inputs);
        assert_eq!(joined.aux, whole.aux);
        assert_eq!(whole.inputs.len(), 4);
    }

    #[test]
    fn passes_a_missing_value_on() {
        let mut cs = Assignment::with_capacity(0, 0);
        let missing = cs.alloc(|| "aux", || Err(SynthesisError::AssignmentMissing));
        assert!(matches!(missing, Err(SynthesisError::AssignmentMissing)));
        assert!(cs.aux.is_empty());
    }
}
