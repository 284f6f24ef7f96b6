//! A constraint system that records what a public gadget allocates, split as the packed form is.

use bellperson::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar as Fr;
use ff::Field;
use witness::{Error, Parts, Size, Writer};

/// Values in order of allocation. A variable counts as a bit if the gadget names it as one.
#[derive(Default)]
pub struct Recorder {
    pub bits: Vec<bool>,
    pub dense: Vec<Fr>,
    pub inputs: Vec<Fr>,
    aux: usize,
}

/// The annotations under which bellpepper allocates variables that it constrains to 0 or 1.
const BIT_NAMES: [&str; 7] = [
    "boolean",
    "xor result",
    "and result",
    "and not result",
    "nor result",
    "ch",
    "maj",
];

impl ConstraintSystem<Fr> for Recorder {
    type Root = Self;

    fn new() -> Self {
        Self::default()
    }

    fn alloc<F, A, AR>(&mut self, annotation: A, f: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        let value = f()?;
        let name: String = annotation().into();
        if BIT_NAMES.contains(&name.as_str()) {
            assert!(value == Fr::ZERO || value == Fr::ONE);
            self.bits.push(value == Fr::ONE);
        } else {
            self.dense.push(value);
        }
        self.aux += 1;
        Ok(Variable::new_unchecked(Index::Aux(self.aux - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, f: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(f()?);
        Ok(Variable::new_unchecked(Index::Input(self.inputs.len())))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, _: LA, _: LB, _: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
        LB: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
        LC: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
    {
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self {
        self
    }
}

impl Recorder {
    fn size(&self) -> Size {
        Size {
            inputs: self.inputs.len(),
            bits: self.bits.len(),
            dense: self.dense.len(),
        }
    }

    /// Runs a generator and compares what it writes with what the gadget has allocated.
    pub fn check<T>(&self, generate: impl FnOnce(&mut Writer<'_>) -> T) -> T {
        let mut parts = Parts::default();
        let mut result = None;
        let written: Result<(), Error> = parts.fill(self.size(), |writer| {
            result = Some(generate(writer));
            Ok(())
        });
        written.unwrap();
        self.assert_equals(&parts);
        result.unwrap()
    }

    /// Names the first difference.
    fn assert_equals(&self, parts: &Parts) {
        let bits: Vec<bool> = (0..self.bits.len())
            .map(|i| parts.bits[i / 64] >> (i % 64) & 1 == 1)
            .collect();
        if let Some(i) = (0..bits.len()).find(|&i| bits[i] != self.bits[i]) {
            panic!("bit {i} of {} differs", bits.len());
        }
        assert_eq!(parts.dense.len(), self.dense.len());
        if let Some(i) = (0..self.dense.len()).find(|&i| parts.dense[i] != self.dense[i]) {
            panic!("dense variable {i} of {} differs", self.dense.len());
        }
        assert_eq!(parts.inputs[0], Fr::ONE);
        assert_eq!(parts.inputs[1..], self.inputs);
    }
}
