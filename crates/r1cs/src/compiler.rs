//! Turns finished runs of rows into calls: relative columns, equal runs found, bits inferred.

use crate::bitmap::Bitmap;
use crate::dictionary::{LimbHasher, LimbMap};
use crate::template::{Call, Template};
use crate::{AUX_TAG, Error, Variable};
use std::hash::Hasher;

/// Rows, inputs and aux variables so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) row: u32,
    pub(crate) input: u32,
    pub(crate) aux: u32,
}

/// Rows that wait until it is known which run they belong to.
#[derive(Default)]
pub(crate) struct Pending {
    /// Packed variable and coefficient id, all rows' A, B, C terms one after another.
    pub(crate) terms: Vec<(u32, u16)>,
    /// Ends of A, B, C of each row in `terms`.
    pub(crate) ends: Vec<[usize; 3]>,
}

impl Pending {
    pub(crate) fn rows(&self) -> usize {
        self.ends.len()
    }

    fn row(&self, row: usize) -> [&[(u32, u16)]; 3] {
        let start = row.checked_sub(1).map_or(0, |r| self.ends[r][2]);
        let [a, b, c] = self.ends[row];
        [&self.terms[start..a], &self.terms[a..b], &self.terms[b..c]]
    }

    /// Drops the first `rows` rows.
    pub(crate) fn discard(&mut self, rows: usize) {
        let Some(last) = rows.checked_sub(1) else {
            return;
        };
        let terms = self.ends[last][2];
        self.terms.drain(..terms);
        self.ends.drain(..rows);
        for ends in &mut self.ends {
            *ends = ends.map(|e| e - terms);
        }
    }
}

/// The compiled part of a circuit under construction.
#[derive(Default)]
pub(crate) struct Compiler {
    pub(crate) templates: Vec<Template>,
    pub(crate) calls: Vec<Call>,
    pub(crate) arguments: Vec<u32>,
    /// Which aux variables of finished runs are bits.
    bits: Bitmap,
    bit_count: u32,
    by_hash: LimbMap<u64, Vec<u32>>,
    // Reused between calls.
    scratch: Template,
    argument_slots: LimbMap<u32, u32>,
}

impl Compiler {
    /// Compiles rows `first_row..first_row + (end.row − start.row)` of `pending`, a run that
    /// begins at `start` and ends at `end`.
    pub(crate) fn call(
        &mut self,
        pending: &Pending,
        first_row: usize,
        start: Position,
        end: Position,
        small: &[Option<i64>],
    ) -> Result<(), Error> {
        let call = Call {
            template: 0,
            row: start.row,
            input: start.input,
            aux: start.aux,
            bit: self.bit_count,
            dense: start.aux - self.bit_count,
            argument: u32::try_from(self.arguments.len()).map_err(|_| Error::TooLarge {
                what: "number of arguments",
                value: self.arguments.len() as u64,
                limit: u64::from(u32::MAX),
            })?,
        };
        self.relative_rows(pending, first_row, start, end)?;
        let template = self.template_id(small);
        let bits = &self.templates[template as usize].bits;
        self.bits.append(bits);
        self.bit_count += u32::try_from(bits.count_ones()).expect("at most 2^28 variables");
        self.calls.push(Call { template, ..call });
        Ok(())
    }

    /// Fills `scratch` with the run's rows by slots, and appends its arguments.
    fn relative_rows(
        &mut self,
        pending: &Pending,
        first_row: usize,
        start: Position,
        end: Position,
    ) -> Result<(), Error> {
        let scratch = &mut self.scratch;
        scratch.rows = end.row - start.row;
        scratch.inputs = end.input - start.input;
        scratch.aux = end.aux - start.aux;
        let (first_aux, first_argument) = (1 + scratch.inputs, 1 + scratch.inputs + scratch.aux);
        self.argument_slots.clear();
        scratch.argument_bits = Bitmap::default();
        for matrix in &mut scratch.matrices {
            matrix.clear();
            matrix.starts.push(0);
        }
        for row in first_row..first_row + scratch.rows as usize {
            for (matrix, terms) in scratch.matrices.iter_mut().zip(pending.row(row)) {
                for &(packed, coefficient) in terms {
                    let slot = match Variable::unpack(packed) {
                        Variable::Input(0) => 0,
                        Variable::Input(i) if i >= start.input => 1 + i - start.input,
                        Variable::Aux(i) if i >= start.aux => first_aux + i - start.aux,
                        outer => *self.argument_slots.entry(packed).or_insert_with(|| {
                            let k = scratch.argument_bits.len();
                            let bit =
                                matches!(outer, Variable::Aux(i) if self.bits.get(i as usize));
                            scratch.argument_bits.push(bit);
                            self.arguments.push(packed);
                            first_argument + u32::try_from(k).expect("fewer than variables")
                        }),
                    };
                    matrix.slots.push(slot);
                    matrix.coefficients.push(coefficient);
                }
                let terms = matrix.slots.len();
                matrix
                    .starts
                    .push(u32::try_from(terms).map_err(|_| Error::TooLarge {
                        what: "number of terms of one run",
                        value: terms as u64,
                        limit: u64::from(u32::MAX),
                    })?);
            }
        }
        debug_assert!(pending.rows() >= first_row + scratch.rows as usize);
        Ok(())
    }

    /// The id of a template equal to `scratch`; a new one when there is none.
    fn template_id(&mut self, small: &[Option<i64>]) -> u32 {
        let hash = structure_hash(&self.scratch);
        let candidates = self.by_hash.entry(hash).or_default();
        let scratch = &mut self.scratch;
        let equal = candidates.iter().find(|&&id| {
            let t = &self.templates[id as usize];
            (t.rows, t.inputs, t.aux) == (scratch.rows, scratch.inputs, scratch.aux)
                && t.argument_bits == scratch.argument_bits
                && t.matrices == scratch.matrices
        });
        if let Some(&id) = equal {
            return id;
        }
        let id = u32::try_from(self.templates.len()).expect("at most one per row and variable");
        candidates.push(id);
        let mut template = scratch.clone();
        template.infer(small);
        for matrix in &mut template.matrices {
            matrix.starts.shrink_to_fit();
            matrix.slots.shrink_to_fit();
            matrix.coefficients.shrink_to_fit();
        }
        self.templates.push(template);
        id
    }
}

fn structure_hash(template: &Template) -> u64 {
    let mut hasher = LimbHasher::default();
    hasher.write_u64(u64::from(template.rows));
    hasher.write_u64(u64::from(template.inputs) << 32 | u64::from(template.aux));
    for &word in template.argument_bits.words() {
        hasher.write_u64(word);
    }
    for matrix in &template.matrices {
        for &start in &matrix.starts {
            hasher.write_u32(start);
        }
        for (&slot, &id) in matrix.slots.iter().zip(&matrix.coefficients) {
            hasher.write_u64(u64::from(slot) << 16 | u64::from(id));
        }
    }
    hasher.finish()
}

/// Whether the packed variable exists at `position`.
pub(crate) fn is_allocated(packed: u32, position: Position) -> bool {
    if packed & AUX_TAG == 0 {
        packed < position.input
    } else {
        packed & !AUX_TAG < position.aux
    }
}
