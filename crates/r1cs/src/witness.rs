//! Assignments in packed form: a bitmap for the bits, field elements for the rest.

use ff::Field;

use crate::circuit::{CompiledCircuit, Place};
use crate::{Error, Fr, Variable};

/// A full assignment. It has the lengths of the circuit it was made for; whether it
/// satisfies the circuit is [`CompiledCircuit::check`]'s question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedWitness {
    inputs: Vec<Fr>,
    bits: Vec<u64>,
    dense: Vec<Fr>,
}

impl PackedWitness {
    /// From all values.
    ///
    /// `inputs` begin with the constant one.
    ///
    /// # Errors
    /// Wrong lengths, a first input that is not one, or [`Error::NotABit`] for the first
    /// variable that the circuit forces to be 0 or 1 and that is neither.
    pub fn from_assignment(
        circuit: &CompiledCircuit,
        inputs: &[Fr],
        aux: &[Fr],
    ) -> Result<Self, Error> {
        check_length("aux assignment", circuit.shape().aux, aux.len())?;
        check_inputs(circuit, inputs)?;
        let mut packer = Packer::new(circuit);
        aux.iter().try_for_each(|value| packer.push(value))?;
        packer.finish(inputs.to_vec())
    }

    /// From packed parts: `bits` holds bit k in bit k mod 64 of word k / 64.
    ///
    /// # Errors
    /// Wrong lengths, a first input that is not one, a bit set beyond the last.
    pub fn from_parts(
        circuit: &CompiledCircuit,
        inputs: Vec<Fr>,
        bits: Vec<u64>,
        dense: Vec<Fr>,
    ) -> Result<Self, Error> {
        let layout = circuit.layout();
        check_inputs(circuit, &inputs)?;
        check_length(
            "bitmap (words)",
            layout.bit_count().div_ceil(64),
            bits.len(),
        )?;
        check_length("dense part", layout.dense_count(), dense.len())?;
        let tail = layout.bit_count() % 64;
        if tail > 0 && bits.last().is_some_and(|w| w >> tail != 0) {
            return Err(Error::Length {
                what: "bitmap (highest bit set)",
                expected: layout.bit_count(),
                found: bits.len() * 64,
            });
        }
        Ok(Self {
            inputs,
            bits,
            dense,
        })
    }

    /// Public inputs with the constant one in front.
    #[must_use]
    pub fn inputs(&self) -> &[Fr] {
        &self.inputs
    }

    /// The k-th bit variable in allocation order is bit k mod 64 of word k / 64.
    #[must_use]
    pub fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// The other aux variables in allocation order.
    #[must_use]
    pub fn dense(&self) -> &[Fr] {
        &self.dense
    }

    /// Bit `k` of the bitmap.
    #[inline]
    pub(crate) fn bit(&self, k: u32) -> bool {
        self.bits[k as usize / 64] >> (k % 64) & 1 == 1
    }

    /// Value of a variable of `circuit`, for which this witness was made.
    ///
    /// # Panics
    /// Where the variable or this witness is not of the circuit.
    #[must_use]
    pub fn value(&self, circuit: &CompiledCircuit, variable: Variable) -> Fr {
        match variable {
            Variable::Input(i) => self.inputs[i as usize],
            Variable::Aux(i) => match circuit.layout().place(i) {
                Place::Bit(k) => Fr::from(u64::from(self.bit(k))),
                Place::Dense(k) => self.dense[k as usize],
            },
        }
    }

    /// Checks that this witness has the lengths of `circuit`.
    pub(crate) fn check_lengths(&self, circuit: &CompiledCircuit) -> Result<(), Error> {
        let layout = circuit.layout();
        check_length("inputs", circuit.shape().inputs, self.inputs.len())?;
        check_length(
            "bitmap (words)",
            layout.bit_count().div_ceil(64),
            self.bits.len(),
        )?;
        check_length("dense part", layout.dense_count(), self.dense.len())
    }
}

pub(crate) fn check_length(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found {
        Ok(())
    } else {
        Err(Error::Length {
            what,
            expected,
            found,
        })
    }
}

fn check_inputs(circuit: &CompiledCircuit, inputs: &[Fr]) -> Result<(), Error> {
    check_length("inputs", circuit.shape().inputs, inputs.len())?;
    if inputs.first() == Some(&Fr::ONE) {
        Ok(())
    } else {
        Err(Error::FirstInputNotOne)
    }
}

/// Packs aux values one by one in allocation order, so that a synthesis need not hold
/// all of them as field elements.
pub struct Packer<'c> {
    circuit: &'c CompiledCircuit,
    bits: Vec<u64>,
    dense: Vec<Fr>,
    aux_count: usize,
    bit_count: usize,
}

impl<'c> Packer<'c> {
    /// Starts an assignment for `circuit`.
    #[must_use]
    pub fn new(circuit: &'c CompiledCircuit) -> Self {
        let layout = circuit.layout();
        Self {
            circuit,
            bits: vec![0; layout.bit_count().div_ceil(64)],
            dense: Vec::with_capacity(layout.dense_count()),
            aux_count: 0,
            bit_count: 0,
        }
    }

    /// Takes the next aux variable's value.
    ///
    /// # Errors
    /// One variable too many, or a variable that must be a bit and is not.
    pub fn push(&mut self, value: &Fr) -> Result<(), Error> {
        let total = self.circuit.shape().aux;
        if self.aux_count == total {
            return check_length("aux assignment", total, total + 1);
        }
        if self.circuit.layout().bitmap().get(self.aux_count) {
            if *value == Fr::ONE {
                self.bits[self.bit_count / 64] |= 1 << (self.bit_count % 64);
            } else if !bool::from(value.is_zero()) {
                return Err(self.not_a_bit());
            }
            self.bit_count += 1;
        } else {
            self.dense.push(*value);
        }
        self.aux_count += 1;
        Ok(())
    }

    /// Ends the assignment. `inputs` begin with the constant one.
    ///
    /// # Errors
    /// Where aux variables are missing, a wrong number of inputs, or a first one that is
    /// not one.
    pub fn finish(self, inputs: Vec<Fr>) -> Result<PackedWitness, Error> {
        check_length("aux assignment", self.circuit.shape().aux, self.aux_count)?;
        check_inputs(self.circuit, &inputs)?;
        Ok(PackedWitness {
            inputs,
            bits: self.bits,
            dense: self.dense,
        })
    }

    fn not_a_bit(&self) -> Error {
        let aux = u32::try_from(self.aux_count).expect("at most 2^28 variables");
        let (row, rule) = self
            .circuit
            .bit_reason(aux)
            .expect("every bit of the layout has a row that makes it one");
        Error::NotABit {
            variable: Variable::Aux(aux),
            row,
            rule,
        }
    }
}
