//! Packing of a circuit's values as they come.

use bellpepper_core::SynthesisError;
use ff::Field;
use r1cs::{CompiledCircuit, Fr, PackedWitness, Packer};

use crate::values::Sink;

/// Packs an assignment while its circuit is synthesised, so that the bits, nearly all of a PoRep
/// or Snap witness, are never held as field elements: tens of megabytes instead of 4 GB at 32 GiB.
pub(crate) struct Packing<'c> {
    inputs: Vec<Fr>,
    packer: Packer<'c>,
    error: Option<r1cs::Error>,
}

impl<'c> Packing<'c> {
    pub(crate) fn new(circuit: &'c CompiledCircuit) -> Self {
        let mut inputs = Vec::with_capacity(circuit.shape().inputs);
        inputs.push(Fr::ONE);
        Self {
            inputs,
            packer: Packer::new(circuit),
            error: None,
        }
    }

    /// The witness, given how the synthesis ended. A refusal of the packer comes first: the
    /// synthesis error is only its echo.
    pub(crate) fn finish(
        self,
        synthesis: Result<(), SynthesisError>,
    ) -> Result<Result<PackedWitness, r1cs::Error>, SynthesisError> {
        if let Some(error) = self.error {
            return Ok(Err(error));
        }
        synthesis?;
        Ok(self.packer.finish(self.inputs))
    }
}

impl Sink for Packing<'_> {
    fn input(&mut self, value: Fr) -> Result<(), SynthesisError> {
        self.inputs.push(value);
        Ok(())
    }

    fn aux(&mut self, value: Fr) -> Result<(), SynthesisError> {
        self.packer.push(&value).map_err(|error| {
            self.error = Some(error);
            SynthesisError::Unsatisfiable
        })
    }
}

#[cfg(test)]
mod tests {
    use bellpepper_core::ConstraintSystem;
    use r1cs::{Builder, Variable as Column};

    use super::*;
    use crate::values::Values;

    /// One bit b with b·(1 − b) = 0, and one free value with v·1 = v.
    fn circuit() -> CompiledCircuit {
        let mut builder = Builder::new();
        let (bit, value) = (builder.alloc_aux(), builder.alloc_aux());
        let one = (Column::ONE, Fr::ONE);
        builder.enforce(&[one, (bit, -Fr::ONE)], &[(bit, Fr::ONE)], &[]);
        builder.enforce(&[(value, Fr::ONE)], &[one], &[(value, Fr::ONE)]);
        builder.finish().unwrap()
    }

    fn pack(
        circuit: &CompiledCircuit,
        values: &[Result<u64, SynthesisError>],
    ) -> Result<Result<PackedWitness, r1cs::Error>, SynthesisError> {
        let mut into = Values::new(Packing::new(circuit));
        let synthesis = values.iter().try_for_each(|value| {
            let value = value.as_ref().map(|value| Fr::from(*value));
            into.alloc(
                || "",
                || value.map_err(|_| SynthesisError::AssignmentMissing),
            )
            .map(drop)
        });
        into.sink.finish(synthesis)
    }

    #[test]
    fn packs_what_the_circuit_takes() {
        let circuit = circuit();
        let packed = pack(&circuit, &[Ok(1), Ok(7)]).unwrap().unwrap();
        let aux = [Fr::ONE, Fr::from(7)];
        let expected = PackedWitness::from_assignment(&circuit, &[Fr::ONE], &aux).unwrap();
        assert_eq!(packed, expected);
    }

    #[test]
    fn names_the_variable_that_is_no_bit() {
        let error = pack(&circuit(), &[Ok(2), Ok(7)]).unwrap().unwrap_err();
        assert!(matches!(error, r1cs::Error::NotABit { .. }), "{error}");
    }

    #[test]
    fn refuses_too_few_and_too_many_values() {
        assert!(pack(&circuit(), &[Ok(1)]).unwrap().is_err());
        assert!(pack(&circuit(), &[Ok(1), Ok(7), Ok(7)]).unwrap().is_err());
    }

    #[test]
    fn passes_a_missing_value_on() {
        let missing = pack(&circuit(), &[Err(SynthesisError::AssignmentMissing)]);
        assert!(matches!(missing, Err(SynthesisError::AssignmentMissing)));
    }
}
