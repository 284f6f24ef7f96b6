//! Comparison of a witness with the public circuit's own assignment, value by value.

use bellpepper_core::{Circuit, SynthesisError};
use filecoin::Request;
use r1cs::{CompiledCircuit, Fr, PackedWitness, Variable};

use crate::assignment::Assignment;
use crate::circuits::{Visitor, with_circuit};
use crate::values::{Sink, Values};
use crate::{Error, guarded};

/// The first variable in which a witness is not the public circuit's assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// A value.
    #[error("{variable:?} is {found:?} in the witness, {expected:?} in the public circuit")]
    Value {
        /// The variable, by the circuit's numbering.
        variable: Variable,
        /// Value in the witness.
        found: Fr,
        /// Value of the public circuit.
        expected: Fr,
    },
    /// A number of variables.
    #[error("the witness has {found} {what}, the public circuit {expected}")]
    Count {
        /// Public inputs, the constant one included, or auxiliary variables.
        what: &'static str,
        /// How many the witness has.
        found: usize,
        /// How many the public circuit allocates.
        expected: usize,
    },
}

/// Synthesises the public circuit of one partition and compares every variable that it allocates with
/// `witness`, which is the packed witness of that partition for `circuit`; how many variables were
/// compared, if all agree.
///
/// Nothing is kept of the assignment, so that the memory taken is that of the public circuit's own
/// structures; the price is that everything runs on the calling thread.
///
/// # Errors
/// Those of [`with_circuit`]; [`Error::Synthesis`] and [`Error::Panicked`] where the circuit
/// does not take the values; [`Error::Differs`] with the first difference.
pub fn compare(
    request: &Request,
    partition: usize,
    circuit: &CompiledCircuit,
    witness: &PackedWitness,
) -> Result<usize, Error> {
    guarded(|| with_circuit(request, partition, Compare { circuit, witness })?)
}

/// [`compare`] for an assignment that is there already.
///
/// # Errors
/// [`Error::Differs`] with the first difference.
pub fn compare_assignment(
    assignment: &Assignment,
    circuit: &CompiledCircuit,
    witness: &PackedWitness,
) -> Result<usize, Error> {
    let mut comparison = Comparison::new(circuit, witness);
    // The constant one is there on both sides.
    let mut inputs = assignment.inputs.iter().skip(1);
    let mut aux = assignment.aux.iter();
    let compared = inputs
        .try_for_each(|value| comparison.input(*value))
        .and_then(|()| aux.try_for_each(|value| comparison.aux(*value)));
    comparison.finish(compared)
}

struct Compare<'w> {
    circuit: &'w CompiledCircuit,
    witness: &'w PackedWitness,
}

impl Visitor for Compare<'_> {
    type Output = Result<usize, Error>;

    fn visit<C: Circuit<Fr> + Send>(self, circuit: C) -> Self::Output {
        let mut values = Values::new(Comparison::new(self.circuit, self.witness));
        let synthesis = circuit.synthesize(&mut values);
        values.sink.finish(synthesis)
    }
}

/// Compares each value as it is allocated.
struct Comparison<'w> {
    circuit: &'w CompiledCircuit,
    witness: &'w PackedWitness,
    inputs: usize,
    aux: usize,
    /// Bits and field elements among the `aux` variables so far.
    bits: usize,
    dense: usize,
    difference: Option<Difference>,
}

impl<'w> Comparison<'w> {
    fn new(circuit: &'w CompiledCircuit, witness: &'w PackedWitness) -> Self {
        Self {
            circuit,
            witness,
            // The constant one is the first input of every circuit, and no circuit allocates it.
            inputs: 1,
            aux: 0,
            bits: 0,
            dense: 0,
            difference: None,
        }
    }

    /// The next auxiliary variable's value in the witness.
    fn next_aux(&mut self) -> Option<Fr> {
        if self.aux >= self.circuit.shape().aux {
            return None;
        }
        if self.circuit.layout().bitmap().get(self.aux) {
            let word = self.witness.bits().get(self.bits / 64)?;
            let bit = word >> (self.bits % 64) & 1;
            self.bits += 1;
            Some(Fr::from(bit))
        } else {
            self.dense += 1;
            self.witness.dense().get(self.dense - 1).copied()
        }
    }

    /// Notes a difference, and stops the synthesis: nothing after the first matters.
    fn expect(
        &mut self,
        variable: Variable,
        found: Option<Fr>,
        expected: Fr,
    ) -> Result<(), SynthesisError> {
        self.difference = match found {
            Some(found) if found == expected => return Ok(()),
            Some(found) => Some(Difference::Value {
                variable,
                found,
                expected,
            }),
            None => Some(self.surplus(variable)),
        };
        Err(SynthesisError::Unsatisfiable)
    }

    /// The public circuit allocates a variable that the witness does not have.
    fn surplus(&self, variable: Variable) -> Difference {
        match variable {
            Variable::Input(_) => Difference::Count {
                what: "public inputs",
                found: self.witness.inputs().len(),
                expected: self.inputs + 1,
            },
            Variable::Aux(_) => Difference::Count {
                what: "auxiliary variables",
                found: self.aux,
                expected: self.aux + 1,
            },
        }
    }

    /// The outcome, given how the synthesis ended. A difference comes first: the synthesis error
    /// is only its echo.
    fn finish(self, synthesis: Result<(), SynthesisError>) -> Result<usize, Error> {
        if let Some(difference) = self.difference {
            return Err(difference.into());
        }
        synthesis?;
        let (inputs, aux) = (self.witness.inputs().len(), self.circuit.shape().aux);
        for (what, found, expected) in [
            ("public inputs", inputs, self.inputs),
            ("auxiliary variables", aux, self.aux),
        ] {
            if found != expected {
                return Err(Difference::Count {
                    what,
                    found,
                    expected,
                }
                .into());
            }
        }
        Ok(self.inputs + self.aux)
    }
}

/// A variable's number; the compiled circuits bound it.
fn number(index: usize) -> u32 {
    u32::try_from(index).expect("invariant: circuits have fewer than 2^32 variables")
}

impl Sink for Comparison<'_> {
    fn input(&mut self, expected: Fr) -> Result<(), SynthesisError> {
        let found = self.witness.inputs().get(self.inputs).copied();
        self.expect(Variable::Input(number(self.inputs)), found, expected)?;
        self.inputs += 1;
        Ok(())
    }

    fn aux(&mut self, expected: Fr) -> Result<(), SynthesisError> {
        let found = self.next_aux();
        self.expect(Variable::Aux(number(self.aux)), found, expected)?;
        self.aux += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bellpepper_core::ConstraintSystem;
    use ff::Field;
    use r1cs::Builder;

    use super::*;

    /// A public input, a bit and a free value, each with a row that mentions it.
    fn circuit() -> CompiledCircuit {
        let mut builder = Builder::new();
        let input = builder.alloc_input();
        let (bit, value) = (builder.alloc_aux(), builder.alloc_aux());
        let one = (Variable::ONE, Fr::ONE);
        builder.enforce(&[one, (bit, -Fr::ONE)], &[(bit, Fr::ONE)], &[]);
        builder.enforce(&[(value, Fr::ONE)], &[one], &[(input, Fr::ONE)]);
        builder.finish().unwrap()
    }

    /// Compares the witness (input 5, bit 1, value 7) with what a circuit allocates.
    fn against(inputs: &[u64], aux: &[u64]) -> Result<usize, Error> {
        let circuit = circuit();
        let ours = [Fr::ONE, Fr::from(5)];
        let witness =
            PackedWitness::from_assignment(&circuit, &ours, &[Fr::ONE, Fr::from(7)]).unwrap();
        let mut comparison = Comparison::new(&circuit, &witness);
        let mut allocate = || {
            for value in inputs {
                comparison.input(Fr::from(*value))?;
            }
            for value in aux {
                comparison.aux(Fr::from(*value))?;
            }
            Ok(())
        };
        let synthesis = allocate();
        comparison.finish(synthesis)
    }

    fn difference(inputs: &[u64], aux: &[u64]) -> Difference {
        match against(inputs, aux) {
            Err(Error::Differs(difference)) => difference,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn equal_assignments_are_counted() {
        assert_eq!(against(&[5], &[1, 7]).unwrap(), 4);
    }

    #[test]
    fn the_first_difference_is_named() {
        for (inputs, aux, expected) in [
            (&[6], &[1, 7], Variable::Input(1)),
            (&[5], &[0, 7], Variable::Aux(0)),
            (&[5], &[2, 7], Variable::Aux(0)),
            (&[5], &[1, 8], Variable::Aux(1)),
        ] {
            match difference(inputs, aux) {
                Difference::Value { variable, .. } => assert_eq!(variable, expected),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn other_numbers_of_variables_differ() {
        for (inputs, aux) in [
            (&[5, 5][..], &[1, 7][..]),
            (&[][..], &[1, 7][..]),
            (&[5][..], &[1][..]),
            (&[5][..], &[1, 7, 7][..]),
        ] {
            let difference = difference(inputs, aux);
            assert!(
                matches!(difference, Difference::Count { found, expected, .. } if found != expected)
            );
        }
    }

    #[test]
    fn a_missing_value_is_no_agreement() {
        let circuit = circuit();
        let aux = [Fr::ONE, Fr::from(7)];
        let witness =
            PackedWitness::from_assignment(&circuit, &[Fr::ONE, Fr::from(5)], &aux).unwrap();
        let mut values = Values::new(Comparison::new(&circuit, &witness));
        let missing = values.alloc(|| "", || Err(SynthesisError::AssignmentMissing));
        let ended = values.sink.finish(missing.map(drop));
        assert!(matches!(ended, Err(Error::Synthesis(_))), "{ended:?}");
    }
}
