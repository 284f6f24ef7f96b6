//! Random circuits for tests, with a naive model beside the builder.

use std::collections::BTreeMap;

use ff::Field;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use crate::{Builder, CompiledCircuit, Fr, PackedWitness, Variable};

/// How a term names a variable: the rest of the division by what is allocated.
#[derive(Clone, Debug)]
pub enum Pick {
    /// An input.
    Input(u32),
    /// An aux variable.
    Aux(u32),
    /// Counted back from the newest aux variable.
    RecentAux(u32),
    /// Counted back from the newest input.
    RecentInput(u32),
}

/// One step of building a circuit.
#[derive(Clone, Debug)]
pub enum Op {
    /// A new input.
    AllocInput,
    /// A new aux variable with no row of its own.
    AllocAux,
    /// A new bit with its boolean row.
    Bit,
    /// A gadget of the rule's form over the newest bits.
    Gadget(u8),
    /// Any row: A, B, C.
    Row([Vec<(Pick, i64)>; 3]),
    /// A block, repeated.
    Block(u8, Vec<Op>),
}

/// A sum of variables with their coefficients, none of them zero.
pub type Combination = BTreeMap<Variable, Fr>;

/// Builder and naive model, fed alike.
pub struct Model {
    /// The builder under test.
    pub builder: Builder,
    /// Every row so far.
    pub rows: Vec<[Combination; 3]>,
    /// Inputs so far, the constant one included.
    pub inputs: u32,
    /// Aux variables so far.
    pub aux: u32,
    bits: Vec<Variable>,
}

impl Model {
    /// An empty circuit whose runs have at most `row_limit` rows.
    pub fn new(row_limit: usize) -> Self {
        Self {
            builder: Builder::with_row_limits(1, row_limit),
            rows: Vec::new(),
            inputs: 1,
            aux: 0,
            bits: Vec::new(),
        }
    }

    /// The circuit that `ops` build.
    pub fn of(ops: &[Op], row_limit: usize) -> Self {
        let mut model = Self::new(row_limit);
        model.apply_all(ops);
        model
    }

    fn apply_all(&mut self, ops: &[Op]) {
        ops.iter().for_each(|op| self.apply(op));
    }

    /// A new aux variable.
    pub fn alloc_aux(&mut self) -> Variable {
        self.aux += 1;
        let variable = self.builder.alloc_aux();
        assert_eq!(variable, Variable::Aux(self.aux - 1));
        variable
    }

    /// A row A·B = C with small coefficients.
    pub fn enforce(&mut self, terms: [&[(Variable, i64)]; 3]) {
        let terms = terms.map(|t| t.iter().map(|&(v, c)| (v, integer(c))).collect::<Vec<_>>());
        self.enforce_field(&terms);
    }

    /// A row A·B = C.
    pub fn enforce_field(&mut self, terms: &[Vec<(Variable, Fr)>; 3]) {
        let [a, b, c] = terms;
        self.builder.enforce(a, b, c);
        self.rows.push([a, b, c].map(|terms| {
            let mut sum = Combination::new();
            for (variable, coefficient) in terms {
                *sum.entry(*variable).or_insert(Fr::ZERO) += coefficient;
            }
            sum.retain(|_, c| !bool::from(c.is_zero()));
            sum
        }));
    }

    /// A new variable with its boolean row.
    pub fn bit(&mut self) -> Variable {
        let x = self.alloc_aux();
        self.enforce([&[(Variable::ONE, 1), (x, -1)], &[(x, 1)], &[]]);
        self.bits.push(x);
        x
    }

    fn pick(&self, pick: &Pick) -> Option<Variable> {
        Some(match *pick {
            Pick::Input(k) => Variable::Input(k % self.inputs),
            Pick::RecentInput(k) => Variable::Input(self.inputs - 1 - k % self.inputs),
            Pick::Aux(k) => Variable::Aux(k.checked_rem(self.aux)?),
            Pick::RecentAux(k) => Variable::Aux(self.aux - 1 - k.checked_rem(self.aux)?),
        })
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::AllocInput => {
                self.inputs += 1;
                assert_eq!(self.builder.alloc_input(), Variable::Input(self.inputs - 1));
            }
            Op::AllocAux => {
                self.alloc_aux();
            }
            Op::Bit => {
                self.bit();
            }
            Op::Gadget(kind) => self.gadget(*kind),
            Op::Row(terms) => {
                let terms = terms.each_ref().map(|t| {
                    t.iter()
                        .filter_map(|(p, c)| Some((self.pick(p)?, wide(*c))))
                        .collect()
                });
                self.enforce_field(&terms);
            }
            Op::Block(times, body) => {
                for _ in 0..*times {
                    self.builder.begin_block();
                    self.apply_all(body);
                    self.builder.end_block();
                }
            }
        }
    }

    fn gadget(&mut self, kind: u8) {
        let &[.., a, b, c] = self.bits.as_slice() else {
            return;
        };
        let one = Variable::ONE;
        let x = self.alloc_aux();
        match kind % 6 {
            0 => self.enforce([&[(a, 2)], &[(b, 1)], &[(a, 1), (b, 1), (x, -1)]]),
            1 => self.enforce([&[(a, 1)], &[(b, 1)], &[(x, 1)]]),
            2 => self.enforce([&[(a, 1)], &[(one, 1), (b, -1)], &[(x, 1)]]),
            3 => self.enforce([&[(one, 1), (a, -1)], &[(one, 1), (b, -1)], &[(x, 1)]]),
            4 => self.enforce([&[(b, 1), (c, -1)], &[(a, 1)], &[(x, 1), (c, -1)]]),
            _ => {
                let y = self.alloc_aux();
                self.enforce([&[(b, 1)], &[(c, 1)], &[(y, 1)]]);
                self.enforce([&[(y, 2), (b, -1), (c, -1)], &[(a, 1)], &[(y, 1), (x, -1)]]);
            }
        }
        self.bits.push(x);
    }

    /// The compiled circuit and its rows.
    ///
    /// # Panics
    /// Where the builder refuses the circuit.
    pub fn finish(self) -> (CompiledCircuit, Vec<[Combination; 3]>) {
        (self.builder.finish().expect("a small circuit"), self.rows)
    }
}

/// The field element that an integer stands for.
pub fn integer(value: i64) -> Fr {
    let magnitude = Fr::from(value.unsigned_abs());
    if value < 0 { -magnitude } else { magnitude }
}

/// Small numbers as they are; larger ones become full-size field elements and large powers
/// of two, so that all kinds of coefficients occur.
fn wide(value: i64) -> Fr {
    match value {
        -4..=4 => integer(value),
        5..=40 => Fr::from(2).pow_vartime([value as u64 * 6]),
        _ => integer(value).pow_vartime([19]),
    }
}

/// Values for the circuit's variables: bits random, the rest anything. It does not satisfy
/// the circuit: products do not ask for that.
pub fn any_assignment(circuit: &CompiledCircuit, seed: u64) -> (Vec<Fr>, Vec<Fr>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut inputs = vec![Fr::ONE];
    inputs.resize_with(circuit.shape().inputs, || Fr::random(&mut rng));
    let aux = (0..circuit.shape().aux)
        .map(|k| {
            if circuit.layout().bitmap().get(k) {
                Fr::from(u64::from(rng.next_u32() & 1))
            } else {
                Fr::random(&mut rng)
            }
        })
        .collect();
    (inputs, aux)
}

/// [`any_assignment`], packed.
///
/// # Panics
/// Never: the assignment has the circuit's lengths.
pub fn any_witness(circuit: &CompiledCircuit, seed: u64) -> PackedWitness {
    let (inputs, aux) = any_assignment(circuit, seed);
    PackedWitness::from_assignment(circuit, &inputs, &aux).expect("the circuit's lengths")
}

fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![
        1 => Just(Pick::Input(0)),
        1 => (0..9u32).prop_map(Pick::Input),
        2 => (0..60u32).prop_map(Pick::Aux),
        4 => (0..6u32).prop_map(Pick::RecentAux),
        1 => (0..3u32).prop_map(Pick::RecentInput),
    ]
}

fn combination() -> impl Strategy<Value = Vec<(Pick, i64)>> {
    // Zero coefficients and repeated variables included.
    prop::collection::vec((pick(), -60..60i64), 0..6)
}

fn op() -> impl Strategy<Value = Op> {
    let leaf = prop_oneof![
        1 => Just(Op::AllocInput),
        3 => Just(Op::AllocAux),
        3 => Just(Op::Bit),
        3 => (0..6u8).prop_map(Op::Gadget),
        3 => [combination(), combination(), combination()].prop_map(Op::Row),
    ];
    leaf.prop_recursive(3, 60, 8, |inner| {
        (1..4u8, prop::collection::vec(inner, 0..8)).prop_map(|(n, body)| Op::Block(n, body))
    })
}

/// Circuits of nested and repeated blocks with allocations of both kinds between the rows.
pub fn circuits() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 0..25)
}

/// Limits that split everything, something and nothing.
pub fn row_limits() -> impl Strategy<Value = usize> {
    prop_oneof![1..4usize, 4..40usize, Just(crate::ROW_LIMIT)]
}
