//! A constraint system that keeps nothing: it passes allocations, rows and namespaces on.

use bellpepper_core::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use r1cs::{Builder, Fr};

/// The terms of one linear combination.
pub type Terms = [(r1cs::Variable, Fr)];

/// Takes what a circuit does, in order.
pub trait Sink: Send {
    /// A public input is allocated (input 0, the one, exists before).
    fn input(&mut self);
    /// A private variable is allocated.
    fn aux(&mut self);
    /// The row a·b = c. Coefficients may be zero; no variable occurs twice in a combination.
    fn row(&mut self, a: &Terms, b: &Terms, c: &Terms);
    /// A namespace begins.
    fn begin(&mut self);
    /// The innermost namespace ends.
    fn end(&mut self);
}

impl Sink for Builder {
    fn input(&mut self) {
        self.alloc_input();
    }

    fn aux(&mut self) {
        self.alloc_aux();
    }

    fn row(&mut self, a: &Terms, b: &Terms, c: &Terms) {
        self.enforce(a, b, c);
    }

    fn begin(&mut self) {
        self.begin_block();
    }

    fn end(&mut self) {
        self.end_block();
    }
}

/// Two sinks fed alike.
pub struct Both<S, T>(pub S, pub T);

impl<S: Sink, T: Sink> Sink for Both<S, T> {
    fn input(&mut self) {
        self.0.input();
        self.1.input();
    }

    fn aux(&mut self) {
        self.0.aux();
        self.1.aux();
    }

    fn row(&mut self, a: &Terms, b: &Terms, c: &Terms) {
        self.0.row(a, b, c);
        self.1.row(a, b, c);
    }

    fn begin(&mut self) {
        self.0.begin();
        self.1.begin();
    }

    fn end(&mut self) {
        self.0.end();
        self.1.end();
    }
}

/// The constraint system: numbers the variables and feeds a sink. Values are never asked
/// for, so blank circuits suffice.
pub struct Recording<S> {
    sink: S,
    inputs: usize,
    aux: usize,
    terms: [Vec<(r1cs::Variable, Fr)>; 3],
}

impl<S: Sink> Recording<S> {
    /// A system that has only the constant one.
    pub fn into(sink: S) -> Self {
        Self {
            sink,
            inputs: 1,
            aux: 0,
            terms: Default::default(),
        }
    }

    /// The sink, fed.
    pub fn finish(self) -> S {
        self.sink
    }
}

/// Bellpepper's index in our numbering, which is the same: inputs and aux each from 0.
fn variable(variable: Variable) -> r1cs::Variable {
    // Beyond 2^32 there is no variable in `r1cs`: u32::MAX is never allocated, so the
    // builder refuses the row.
    let narrow = |i: usize| u32::try_from(i).unwrap_or(u32::MAX >> 1);
    match variable.get_unchecked() {
        Index::Input(i) => r1cs::Variable::Input(narrow(i)),
        Index::Aux(i) => r1cs::Variable::Aux(narrow(i)),
    }
}

impl<S: Sink> ConstraintSystem<Fr> for Recording<S> {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.sink.aux();
        self.aux += 1;
        Ok(Variable::new_unchecked(Index::Aux(self.aux - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.sink.input();
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
        let combinations = [a(zero()), b(zero()), c(zero())];
        for (terms, combination) in self.terms.iter_mut().zip(&combinations) {
            terms.clear();
            terms.extend(combination.iter().map(|(v, &c)| (variable(v), c)));
        }
        let [a, b, c] = &self.terms;
        self.sink.row(a, b, c);
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
        self.sink.begin();
    }

    fn pop_namespace(&mut self) {
        self.sink.end();
    }

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}
