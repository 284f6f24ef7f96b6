//! The transposed product Mᵀ·v, as key generation needs it, and M·v for values that are no
//! witness.

use ff::Field;
use rayon::prelude::*;

use crate::circuit::CompiledCircuit;
use crate::dictionary::Dictionary;
use crate::template::{Call, Slot, Template};
use crate::{Fr, Matrix, Variable};

/// The columns one call adds to: its own variables in place, outer ones apart.
struct CallColumns<'o> {
    inputs: &'o mut [Fr],
    aux: &'o mut [Fr],
    one: Fr,
    arguments: Vec<Fr>,
}

impl CallColumns<'_> {
    #[inline]
    fn at(&mut self, template: &Template, slot: u32) -> &mut Fr {
        match template.slot(slot) {
            Slot::One => &mut self.one,
            Slot::Input(k) => &mut self.inputs[k as usize],
            Slot::Aux(k) => &mut self.aux[k as usize],
            Slot::Argument(k) => &mut self.arguments[k as usize],
        }
    }

    fn add_rows(&mut self, template: &Template, m: Matrix, values: &[Fr], dictionary: &Dictionary) {
        for (row, value) in values.iter().enumerate() {
            let (slots, ids) = template.matrix(m).row(row);
            // The last product that took a multiplication or doubling, and its coefficient.
            let mut last: Option<(u16, Fr)> = None;
            for (&slot, &id) in slots.iter().zip(ids) {
                let column = self.at(template, slot);
                match dictionary.small(id) {
                    Some(1) => *column += value,
                    Some(-1) => *column -= value,
                    small => {
                        let product = match (last, small) {
                            (Some((l, product)), _) if l == id => product,
                            (Some((l, product)), _) if dictionary.half_of(id) == Some(l) => {
                                product.double()
                            }
                            (_, Some(2)) => value.double(),
                            _ => *value * dictionary.value(id),
                        };
                        *column += product;
                        last = Some((id, product));
                    }
                }
            }
        }
    }
}

impl CompiledCircuit {
    /// Mᵀ·v for `row_values` v: for every column the sum of its coefficients, each times the
    /// value of its row. Columns are inputs first, then aux. In parallel over the calls.
    ///
    /// # Panics
    /// Where `row_values` has another length than the circuit has rows.
    #[must_use]
    pub fn columns_at(&self, m: Matrix, row_values: &[Fr]) -> Vec<Fr> {
        let shape = self.shape();
        assert_eq!(row_values.len(), shape.constraints, "one value per row");
        // By all threads: the first write to fresh memory takes longer than the products.
        let mut columns: Vec<Fr> =
            rayon::iter::repeat_n(Fr::ZERO, shape.inputs + shape.aux).collect();
        let (inputs, aux) = columns.split_at_mut(shape.inputs);
        let outer: Vec<(&Call, Fr, Vec<Fr>)> = self
            .pieces(inputs, aux)
            .into_par_iter()
            .map(|(call, mut piece)| {
                let template = self.template(call);
                piece.arguments = vec![Fr::ZERO; template.arguments()];
                let rows = call.row as usize..call.row as usize + template.rows();
                piece.add_rows(template, m, &row_values[rows], self.dictionary());
                (call, piece.one, piece.arguments)
            })
            .collect();
        for (call, one, sums) in outer {
            columns[0] += one;
            for (variable, sum) in self.arguments(call).zip(&sums) {
                let column = match variable {
                    Variable::Input(i) => i as usize,
                    Variable::Aux(i) => shape.inputs + i as usize,
                };
                columns[column] += sum;
            }
        }
        columns
    }

    /// M·v for any values v of the columns, inputs first, then aux: for every row the sum of its
    /// coefficients, each times the value of its column. In parallel over the calls. For a
    /// witness, whose bits are packed, [`Self::evaluate`] is faster.
    ///
    /// # Panics
    /// Where `column_values` has another length than the circuit has variables.
    #[must_use]
    pub fn rows_at(&self, m: Matrix, column_values: &[Fr]) -> Vec<Fr> {
        let shape = self.shape();
        let (inputs, aux) = column_values.split_at(shape.inputs);
        assert_eq!(aux.len(), shape.aux, "one value per variable");
        let mut rows: Vec<Fr> = rayon::iter::repeat_n(Fr::ZERO, shape.constraints).collect();
        let mut rest = rows.as_mut_slice();
        let mut pieces = Vec::with_capacity(self.calls().len());
        for call in self.calls() {
            let (own, after) = rest.split_at_mut(self.template(call).rows());
            pieces.push((call, own));
            rest = after;
        }
        pieces.into_par_iter().for_each(|(call, rows)| {
            let template = self.template(call);
            let arguments = self.packed_arguments(call);
            for (row, out) in rows.iter_mut().enumerate() {
                let (slots, ids) = template.matrix(m).row(row);
                for (&slot, &id) in slots.iter().zip(ids) {
                    let value = match call.variable(template, arguments, slot) {
                        Variable::Input(i) => &inputs[i as usize],
                        Variable::Aux(i) => &aux[i as usize],
                    };
                    match self.dictionary().small(id) {
                        Some(1) => *out += value,
                        Some(-1) => *out -= value,
                        _ => *out += *value * self.dictionary().value(id),
                    }
                }
            }
        });
        rows
    }

    /// Splits the columns into those of each call. Input 0 belongs to none.
    fn pieces<'o>(&self, inputs: &'o mut [Fr], aux: &'o mut [Fr]) -> Vec<(&Call, CallColumns<'o>)> {
        let (_, mut inputs) = inputs.split_at_mut(1);
        let mut aux = aux;
        let mut pieces = Vec::with_capacity(self.calls().len());
        for call in self.calls() {
            let template = self.template(call);
            let (own_inputs, after_inputs) = inputs.split_at_mut(template.inputs());
            let (own_aux, after_aux) = aux.split_at_mut(template.aux());
            let columns = CallColumns {
                inputs: own_inputs,
                aux: own_aux,
                one: Fr::ZERO,
                arguments: Vec::new(),
            };
            pieces.push((call, columns));
            (inputs, aux) = (after_inputs, after_aux);
        }
        pieces
    }
}
