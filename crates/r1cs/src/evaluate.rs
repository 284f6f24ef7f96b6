//! A·w, B·w, C·w and the check of a witness, call by call from the templates.

use ff::Field;
use rayon::prelude::*;

use crate::bitmap::Bitmap;
use crate::circuit::{CompiledCircuit, Place};
use crate::dictionary::Dictionary;
use crate::template::{Call, Template};
use crate::witness::{PackedWitness, check_length};
use crate::{Error, Fr, Matrix, Variable};

/// What evaluation wants to know of each template in advance.
pub(crate) struct Plan {
    templates: Vec<TemplatePlan>,
    /// Small coefficients as integers; 0 for the others.
    small: Vec<i64>,
    /// −`TABLE`..=`TABLE` as field elements: most rows are sums of a few bits.
    table: Vec<Fr>,
}

const TABLE: i64 = 32;

struct TemplatePlan {
    /// Per slot its index among the slots that are not bits (meaningless for bits).
    dense_index: Vec<u32>,
    /// Per matrix the rows whose terms are all bits with small coefficients.
    small_rows: [Bitmap; 3],
}

impl Plan {
    fn new(circuit: &CompiledCircuit) -> Self {
        let dictionary = circuit.dictionary();
        Self {
            templates: circuit
                .templates()
                .iter()
                .map(|t| TemplatePlan::new(t, dictionary))
                .collect(),
            small: dictionary
                .small_values()
                .iter()
                .map(|s| s.unwrap_or(0))
                .collect(),
            table: (-TABLE..=TABLE).map(from_integer).collect(),
        }
    }

    fn field(&self, integer: i64) -> Fr {
        match usize::try_from(integer + TABLE) {
            Ok(k) if k < self.table.len() => self.table[k],
            _ => from_integer(integer),
        }
    }
}

impl TemplatePlan {
    fn new(template: &Template, dictionary: &Dictionary) -> Self {
        let mut dense = 0;
        let dense_index = (0..template.slots())
            .map(|slot| {
                let index = dense;
                dense += u32::from(!template.is_bit(slot_number(slot)));
                index
            })
            .collect();
        let small_rows = template.matrices.each_ref().map(|matrix| {
            let mut rows = Bitmap::new(template.rows());
            for row in 0..template.rows() {
                let (slots, ids) = matrix.row(row);
                let small = slots.iter().all(|&s| template.is_bit(s))
                    && ids.iter().all(|&id| dictionary.small(id).is_some());
                if small {
                    rows.set(row);
                }
            }
            rows
        });
        Self {
            dense_index,
            small_rows,
        }
    }
}

fn slot_number(slot: usize) -> u32 {
    u32::try_from(slot).expect("slots are u32")
}

fn from_integer(integer: i64) -> Fr {
    let magnitude = Fr::from(integer.unsigned_abs());
    if integer < 0 { -magnitude } else { magnitude }
}

/// Marks a slot in [`Values::bits`] whose value is in [`Values::dense`].
const DENSE: u8 = 2;

/// The values of one call's slots.
#[derive(Default)]
struct Values {
    /// Per slot 0 or 1, or [`DENSE`].
    bits: Vec<u8>,
    /// Values of the slots that are not bits, in slot order.
    dense: Vec<Fr>,
}

impl Values {
    fn load(&mut self, circuit: &CompiledCircuit, call: &Call, w: &PackedWitness) {
        let template = circuit.template(call);
        self.bits.clear();
        self.dense.clear();
        self.bits.push(1);
        self.bits.resize(1 + template.inputs(), DENSE);
        let inputs = call.input as usize;
        self.dense
            .extend(&w.inputs()[inputs..inputs + template.inputs()]);

        let mut bit = call.bit;
        for k in 0..template.aux() {
            if template.bits.get(k) {
                self.bits.push(u8::from(w.bit(bit)));
                bit += 1;
            } else {
                self.bits.push(DENSE);
            }
        }
        let first = call.dense as usize;
        let dense = template.aux() - (bit - call.bit) as usize;
        self.dense.extend(&w.dense()[first..first + dense]);

        for &packed in circuit.packed_arguments(call) {
            match Variable::unpack(packed) {
                Variable::Input(i) => self.push_dense(w.inputs()[i as usize]),
                Variable::Aux(i) => match circuit.layout().place(i) {
                    Place::Bit(k) => self.bits.push(u8::from(w.bit(k))),
                    Place::Dense(k) => self.push_dense(w.dense()[k as usize]),
                },
            }
        }
    }

    fn push_dense(&mut self, value: Fr) {
        self.bits.push(DENSE);
        self.dense.push(value);
    }
}

/// Everything fixed while the rows of one call are evaluated.
struct Evaluator<'c> {
    plan: &'c Plan,
    dictionary: &'c Dictionary,
    template: &'c Template,
    template_plan: &'c TemplatePlan,
}

impl<'c> Evaluator<'c> {
    fn new(circuit: &'c CompiledCircuit, call: &Call) -> Self {
        let plan = circuit.plan.get_or_init(|| Plan::new(circuit));
        Self {
            plan,
            dictionary: circuit.dictionary(),
            template: circuit.template(call),
            template_plan: &plan.templates[call.template as usize],
        }
    }

    #[inline]
    fn row(&self, m: Matrix, row: usize, values: &Values) -> Fr {
        let (slots, ids) = self.template.matrix(m).row(row);
        if self.template_plan.small_rows[m as usize].get(row) {
            // At most 2^28 terms of at most 2^32 each: no overflow.
            let sum = slots.iter().zip(ids).fold(0i64, |sum, (&slot, &id)| {
                sum + self.plan.small[usize::from(id)] * i64::from(values.bits[slot as usize])
            });
            return self.plan.field(sum);
        }
        self.field_row(slots, ids, values)
    }

    fn field_row(&self, slots: &[u32], ids: &[u16], values: &Values) -> Fr {
        let mut sum = Fr::ZERO;
        for (&slot, &id) in slots.iter().zip(ids) {
            match values.bits[slot as usize] {
                0 => {}
                1 => sum += self.dictionary.value(id),
                _ => {
                    let index = self.template_plan.dense_index[slot as usize];
                    let value = &values.dense[index as usize];
                    match self.plan.small[usize::from(id)] {
                        1 => sum += value,
                        -1 => sum -= value,
                        _ => sum += *value * self.dictionary.value(id),
                    }
                }
            }
        }
        sum
    }
}

impl CompiledCircuit {
    /// Writes the rows of M·w into `out`: one element per row of the circuit, in parallel.
    ///
    /// # Errors
    /// Where `w` is not of this circuit or `out` has another length than the circuit's rows.
    pub fn evaluate(&self, m: Matrix, w: &PackedWitness, out: &mut [Fr]) -> Result<(), Error> {
        w.check_lengths(self)?;
        check_length("output", self.shape().constraints, out.len())?;
        let mut rest = out;
        let mut pieces = Vec::with_capacity(self.calls().len());
        for call in self.calls() {
            let (piece, after) = rest.split_at_mut(self.template(call).rows());
            pieces.push((call, piece));
            rest = after;
        }
        pieces
            .into_par_iter()
            .for_each_init(Values::default, |values, (call, piece)| {
                values.load(self, call, w);
                let evaluator = Evaluator::new(self, call);
                for (row, out) in piece.iter_mut().enumerate() {
                    *out = evaluator.row(m, row, values);
                }
            });
        Ok(())
    }

    /// Checks (A·w)∘(B·w) = C·w.
    ///
    /// # Errors
    /// [`Error::Unsatisfied`] with the first row that does not hold, or wrong lengths.
    pub fn check(&self, w: &PackedWitness) -> Result<(), Error> {
        w.check_lengths(self)?;
        let failed = self
            .calls()
            .par_iter()
            .map_init(Values::default, |values, call| {
                values.load(self, call, w);
                let evaluator = Evaluator::new(self, call);
                (0..evaluator.template.rows())
                    .find(|&row| {
                        let [a, b, c] = Matrix::ALL.map(|m| evaluator.row(m, row, values));
                        a * b != c
                    })
                    .map(|row| u64::from(call.row) + row as u64)
            })
            .find_map_first(|row| row);
        failed.map_or(Ok(()), |row| Err(Error::Unsatisfied { row }))
    }
}

#[cfg(test)]
#[path = "evaluate_tests.rs"]
mod tests;
