//! Expansion of templates and calls to plain rows.

use crate::circuit::CompiledCircuit;
use crate::{Fr, Matrix, Variable};

/// One row, expanded. Terms are sorted: inputs before aux, each by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Row number.
    pub index: u64,
    /// Terms of A.
    pub a: &'a [(Variable, Fr)],
    /// Terms of B.
    pub b: &'a [(Variable, Fr)],
    /// Terms of C.
    pub c: &'a [(Variable, Fr)],
}

/// One matrix compressed by rows; columns are inputs first, then aux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csr {
    /// Row r has the terms `starts[r]..starts[r + 1]`.
    pub starts: Vec<u64>,
    /// Column of each term: an input's index, or number of inputs + an aux variable's index.
    pub columns: Vec<u32>,
    /// Coefficient id of each term, see [`crate::Dictionary`].
    pub coefficients: Vec<u16>,
}

impl CompiledCircuit {
    /// Calls `f` with every row in order.
    pub fn for_each_row(&self, mut f: impl FnMut(Row<'_>)) {
        let mut terms: [Vec<(Variable, Fr)>; 3] = Default::default();
        for call in self.calls() {
            let template = self.template(call);
            let arguments = self.packed_arguments(call);
            for row in 0..template.rows() {
                for (out, matrix) in terms.iter_mut().zip(&template.matrices) {
                    let (slots, ids) = matrix.row(row);
                    out.clear();
                    out.extend(slots.iter().zip(ids).map(|(&slot, &id)| {
                        let variable = call.variable(template, arguments, slot);
                        (variable, *self.dictionary().value(id))
                    }));
                }
                let [a, b, c] = &terms;
                let index = u64::from(call.row) + row as u64;
                f(Row { index, a, b, c });
            }
        }
    }

    /// Matrix `m` expanded. For porep-32g's A this takes 2.9 GB: meant for small circuits
    /// and tests.
    #[must_use]
    pub fn to_csr(&self, m: Matrix) -> Csr {
        let nonzeros =
            usize::try_from(self.statistics().nonzeros[m as usize]).expect("terms fit in memory");
        let mut csr = Csr {
            starts: Vec::with_capacity(self.shape().constraints + 1),
            columns: Vec::with_capacity(nonzeros),
            coefficients: Vec::with_capacity(nonzeros),
        };
        csr.starts.push(0);
        let inputs = u32::try_from(self.shape().inputs).expect("at most 2^28");
        for call in self.calls() {
            let template = self.template(call);
            let arguments = self.packed_arguments(call);
            let matrix = template.matrix(m);
            let first = csr.columns.len() as u64;
            csr.starts
                .extend(matrix.starts[1..].iter().map(|&s| first + u64::from(s)));
            csr.columns.extend(matrix.slots.iter().map(|&slot| {
                match call.variable(template, arguments, slot) {
                    Variable::Input(i) => i,
                    Variable::Aux(i) => inputs + i,
                }
            }));
            csr.coefficients.extend(&matrix.coefficients);
        }
        csr
    }
}
