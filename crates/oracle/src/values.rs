//! A constraint system that hands every allocated value on and forgets the constraints.

use bellpepper_core::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use r1cs::Fr;

/// What takes a circuit's values in the order of allocation. An error ends the synthesis.
pub(crate) trait Sink: Send {
    /// The next public input; the constant one is not among them.
    fn input(&mut self, value: Fr) -> Result<(), SynthesisError>;

    /// The next auxiliary variable.
    fn aux(&mut self, value: Fr) -> Result<(), SynthesisError>;
}

/// Synthesises into a [`Sink`]. Not extensible: a circuit synthesises on one thread, in order.
pub(crate) struct Values<S> {
    pub(crate) sink: S,
    inputs: usize,
    aux: usize,
}

impl<S> Values<S> {
    pub(crate) fn new(sink: S) -> Self {
        Self {
            sink,
            // The constant one is the first input of every circuit, and no circuit allocates it.
            inputs: 1,
            aux: 0,
        }
    }
}

impl<S: Sink> ConstraintSystem<Fr> for Values<S> {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _annotation: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.sink.aux(value()?)?;
        self.aux += 1;
        Ok(Variable::new_unchecked(Index::Aux(self.aux - 1)))
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
        self.sink.input(value()?)?;
        self.inputs += 1;
        Ok(Variable::new_unchecked(Index::Input(self.inputs - 1)))
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
}
