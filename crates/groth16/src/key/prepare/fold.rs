//! The product Cᵀ·d for points d: the sum that a prepared key's l has beside the published one.
//!
//! In real circuits nearly every coefficient is ± a power of two. Multiples of a row's point by
//! powers of two come from doubling it, as often as the row's largest one asks for, all rows
//! of a chunk in step; sums are batched affine additions. For porep-32g that is 283 million
//! additions and about as many doublings. The column of the constant one, where hash
//! constants gather, is summed by coefficient first.

use blstrs::{G1Affine, G1Projective, Scalar};
use ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use r1cs::{Call, CompiledCircuit, Dictionary, Matrix, Slot, Template, Variable};
use rayon::prelude::*;

use super::scatter::Scatter;
use crate::curve::{BatchAdder, Pick, PointSum};
use crate::progress::Progress;

/// Rows whose multiples are held at a time.
const CHUNK: usize = 4096;

/// A coefficient, as points are multiplied with it.
#[derive(Clone, Copy)]
enum Factor {
    /// ±2^`log`.
    Power { log: u8, negative: bool },
    /// Any other.
    Other(Scalar),
}

/// All coefficients of a circuit.
fn factors(dictionary: &Dictionary) -> Vec<Factor> {
    let mut powers = vec![Scalar::ONE];
    while powers.len() < 255 {
        powers.push(powers[powers.len() - 1].double());
    }
    let factor = |value: &Scalar| {
        let position = |value: Scalar| powers.iter().position(|power| *power == value);
        let (log, negative) = match (position(*value), position(-*value)) {
            (Some(log), _) => (log, false),
            (None, Some(log)) => (log, true),
            (None, None) => return Factor::Other(*value),
        };
        Factor::Power {
            log: log as u8,
            negative,
        }
    };
    dictionary.values().par_iter().map(factor).collect()
}

/// columns\[j\] += Σ_i C_ij·rows\[i\], inputs first, then aux. `rows` has at least as many points as
/// the circuit has rows. Parallel over the calls.
///
/// # Panics
/// If `rows` is too short, or `columns` has another length than the circuit has variables.
pub(super) fn add_columns(
    circuit: &CompiledCircuit,
    rows: &[G1Affine],
    columns: &mut [G1Affine],
    progress: &dyn Progress,
) {
    let shape = circuit.shape();
    assert_eq!(columns.len(), shape.inputs + shape.aux, "one per variable");
    progress.begin("fold C", shape.constraints as u64);
    let factors = factors(circuit.dictionary());
    let (inputs, aux) = columns.split_at_mut(shape.inputs);
    let outer: Vec<(&Call, G1Projective, Vec<G1Affine>)> = pieces(circuit, inputs, aux)
        .into_par_iter()
        .map_init(
            || Worker::new(&factors),
            |worker, mut piece| {
                let template = circuit.template(piece.call);
                let first = piece.call.row as usize;
                let rows = &rows[first..first + template.rows()];
                let call = piece.call;
                let (one, arguments) = worker.add(template, rows, &mut piece, progress);
                (call, one, arguments)
            },
        )
        .collect();

    let mut one = G1Projective::identity();
    let (mut points, mut targets) = (Vec::new(), Vec::new());
    for (call, sum, arguments) in outer {
        one += sum;
        for (variable, point) in circuit.arguments(call).zip(arguments) {
            if bool::from(point.is_identity()) {
                continue;
            }
            targets.push(match variable {
                Variable::Input(i) => i,
                Variable::Aux(i) => shape.inputs as u32 + i,
            });
            points.push(point);
        }
    }
    let mut scatter = Scatter::new();
    for (target, index) in targets.into_iter().zip(0..) {
        scatter.push(target, Pick::new(index, false));
    }
    scatter.add(&mut BatchAdder::new(), columns, &points);
    columns[0] = (columns[0] + one).to_affine();
}

/// The columns that one call adds to, except the constant one and the arguments.
struct Piece<'c, 'o> {
    call: &'c Call,
    inputs: &'o mut [G1Affine],
    aux: &'o mut [G1Affine],
}

/// Splits the columns into those of each call. Input 0 belongs to none.
fn pieces<'c, 'o>(
    circuit: &'c CompiledCircuit,
    inputs: &'o mut [G1Affine],
    aux: &'o mut [G1Affine],
) -> Vec<Piece<'c, 'o>> {
    let (_, mut inputs) = inputs.split_at_mut(1);
    let mut aux = aux;
    let mut pieces = Vec::with_capacity(circuit.calls().len());
    for call in circuit.calls() {
        let template = circuit.template(call);
        let (own_inputs, after_inputs) = inputs.split_at_mut(template.inputs());
        let (own_aux, after_aux) = aux.split_at_mut(template.aux());
        pieces.push(Piece {
            call,
            inputs: own_inputs,
            aux: own_aux,
        });
        (inputs, aux) = (after_inputs, after_aux);
    }
    pieces
}

/// One thread's work space.
struct Worker<'f> {
    factors: &'f [Factor],
    adder: BatchAdder<G1Affine>,
    /// The chunk's points, then their multiples.
    table: Vec<G1Affine>,
    /// For each row of the chunk, the largest power of two asked for.
    depths: Vec<u8>,
    /// Where each row's doublings begin in `doublings`.
    starts: Vec<u32>,
    /// Index in the table of 2, 4, 8, … times the row's point, row after row.
    doublings: Vec<u32>,
    /// Coefficient and row of the terms of the constant one.
    ones: Vec<(u16, u32)>,
    inputs: Scatter,
    aux: Scatter,
    arguments: Scatter,
}

impl<'f> Worker<'f> {
    fn new(factors: &'f [Factor]) -> Self {
        Worker {
            factors,
            adder: BatchAdder::new(),
            table: Vec::new(),
            depths: Vec::new(),
            starts: Vec::new(),
            doublings: Vec::new(),
            ones: Vec::new(),
            inputs: Scatter::new(),
            aux: Scatter::new(),
            arguments: Scatter::new(),
        }
    }

    /// Adds one call's rows to its columns; returns the sums of the constant one and of the
    /// arguments.
    fn add(
        &mut self,
        template: &Template,
        rows: &[G1Affine],
        piece: &mut Piece<'_, '_>,
        progress: &dyn Progress,
    ) -> (G1Projective, Vec<G1Affine>) {
        let mut arguments = vec![G1Affine::identity(); template.arguments()];
        self.ones.clear();
        for start in (0..rows.len()).step_by(CHUNK) {
            let chunk = &rows[start..rows.len().min(start + CHUNK)];
            self.multiply(template, start, chunk);
            self.collect(template, start, chunk);
            self.inputs.add(&mut self.adder, piece.inputs, &self.table);
            self.aux.add(&mut self.adder, piece.aux, &self.table);
            self.arguments
                .add(&mut self.adder, &mut arguments, &self.table);
            progress.advance(chunk.len() as u64);
        }
        (self.sum_of_ones(rows), arguments)
    }

    /// Fills the table with the chunk's points and their multiples by powers of two.
    fn multiply(&mut self, template: &Template, start: usize, chunk: &[G1Affine]) {
        self.table.clear();
        self.table.extend_from_slice(chunk);
        self.depths.clear();
        self.starts.clear();
        let mut total = 0;
        for row in 0..chunk.len() {
            let (slots, ids) = template.matrix(Matrix::C).row(start + row);
            let terms = slots.iter().zip(ids);
            let depth = terms
                .filter(|(slot, _)| **slot != 0)
                .filter_map(|(_, id)| match self.factors[usize::from(*id)] {
                    Factor::Power { log, .. } => Some(log),
                    Factor::Other(_) => None,
                })
                .max()
                .unwrap_or(0);
            self.depths.push(depth);
            self.starts.push(total);
            total += u32::from(depth);
        }
        self.doublings.clear();
        self.doublings.resize(total as usize, 0);
        for level in 1..=self.depths.iter().copied().max().unwrap_or(0) {
            self.double(level);
        }
    }

    /// Appends 2^`level` times the points of the rows that go that far.
    fn double(&mut self, level: u8) {
        let known = self.table.len();
        let mut pairs = Vec::new();
        for (row, &depth) in self.depths.iter().enumerate() {
            if depth < level {
                continue;
            }
            let first = self.starts[row] as usize;
            let half = match level {
                1 => row,
                level => self.doublings[first + usize::from(level) - 2] as usize,
            };
            self.doublings[first + usize::from(level) - 1] = (known + pairs.len()) as u32;
            pairs.push((Pick::new(half, false), Pick::new(half, false)));
        }
        self.table.resize(known + pairs.len(), G1Affine::identity());
        let (known, new) = self.table.split_at_mut(known);
        self.adder.pair_up(new, known, &pairs);
    }

    /// Hands the chunk's terms to the columns they belong to.
    fn collect(&mut self, template: &Template, start: usize, chunk: &[G1Affine]) {
        for (row, point) in chunk.iter().enumerate() {
            let (slots, ids) = template.matrix(Matrix::C).row(start + row);
            for (&slot, &id) in slots.iter().zip(ids) {
                let slot = template.slot(slot);
                if slot == Slot::One {
                    self.ones.push((id, (start + row) as u32));
                    continue;
                }
                let pick = match self.factors[usize::from(id)] {
                    Factor::Power { log: 0, negative } => Pick::new(row, negative),
                    Factor::Power { log, negative } => {
                        let place = self.starts[row] as usize + usize::from(log) - 1;
                        Pick::new(self.doublings[place] as usize, negative)
                    }
                    Factor::Other(scalar) => {
                        self.table.push((point * scalar).to_affine());
                        Pick::new(self.table.len() - 1, false)
                    }
                };
                match slot {
                    Slot::Input(k) => self.inputs.push(k, pick),
                    Slot::Aux(k) => self.aux.push(k, pick),
                    Slot::Argument(k) => self.arguments.push(k, pick),
                    Slot::One => {}
                }
            }
        }
    }

    /// The terms of the constant one: points with the same coefficient are added first.
    fn sum_of_ones(&mut self, rows: &[G1Affine]) -> G1Projective {
        self.ones.sort_unstable();
        let mut total = G1Projective::identity();
        let mut sum = PointSum::new();
        for group in self.ones.chunk_by(|left, right| left.0 == right.0) {
            for &(_, row) in group {
                sum.push(rows[row as usize]);
            }
            let sum = sum.finish();
            total += match self.factors[usize::from(group[0].0)] {
                Factor::Power { log: 0, negative } => match negative {
                    true => -sum,
                    false => sum,
                },
                Factor::Power { log, negative } => {
                    let doubled = (0..log).fold(sum, |sum, _| sum.double());
                    match negative {
                        true => -doubled,
                        false => doubled,
                    }
                }
                Factor::Other(scalar) => sum * scalar,
            };
        }
        total
    }
}
