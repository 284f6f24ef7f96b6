//! The scalars behind a key's points: every variable's polynomials at τ.

use blstrs::Scalar;
use ff::Field;
use r1cs::{CompiledCircuit, Matrix, Variable};
use rayon::prelude::*;

use super::evaluation::{CosetQuery, fold_weights};
use super::trapdoor::{Trapdoor, lagrange_at, vanishing, zeros};
use crate::key::{KeyError, KeyForm};
use crate::progress::Progress;

/// Variables that a thread takes at a time.
const BLOCK: usize = 1 << 14;

/// Discrete logarithms of the key's vectors, in file order.
pub(crate) struct Queries {
    /// (β·u_j + α·v_j + w_j)(τ)/γ of the inputs.
    pub ic: Vec<Scalar>,
    /// All variables' values for l, of which the published form leaves out the inputs'.
    all_l: Vec<Scalar>,
    /// u_j(τ) of the inputs, then of the auxiliary variables in A.
    pub a: Vec<Scalar>,
    /// v_j(τ) of the inputs, then of the auxiliary variables, in B.
    pub b: Vec<Scalar>,
    tau: Scalar,
    /// Z(τ)/δ.
    h_scale: Scalar,
    /// h of a prepared key.
    coset: Option<CosetQuery>,
}

/// The columns at τ.
struct Columns {
    u: Vec<Scalar>,
    v: Vec<Scalar>,
    w: Vec<Scalar>,
    /// What C adds to l in a prepared key, times δ.
    folded: Option<Vec<Scalar>>,
}

impl Columns {
    fn new(
        circuit: &CompiledCircuit,
        tau: &Scalar,
        form: KeyForm,
        progress: &dyn Progress,
    ) -> Self {
        let shape = circuit.shape();
        progress.begin("columns", 4 + u64::from(form == KeyForm::Prepared));
        let mut lagrange = lagrange_at(tau, shape.domain());
        progress.advance(1);
        let column = |matrix, rows: &[Scalar]| {
            let values = circuit.columns_at(matrix, rows);
            progress.advance(1);
            values
        };
        let (rows, appended) = lagrange.split_at(shape.constraints);
        let mut u = column(Matrix::A, rows);
        // The row input_i · 0 = 0 that follows the circuit's own, one for each input.
        for (u, lagrange) in u[..shape.inputs].iter_mut().zip(appended) {
            *u += lagrange;
        }
        let v = column(Matrix::B, rows);
        let w = column(Matrix::C, rows);
        let folded = (form == KeyForm::Prepared).then(|| {
            let rows = &mut lagrange[..shape.constraints];
            fold_weights(rows, tau, shape.domain());
            column(Matrix::C, rows)
        });
        Columns { u, v, w, folded }
    }
}

impl Queries {
    /// Evaluates all polynomials, on all threads.
    ///
    /// Needs 32 bytes for each point of the domain until the columns are evaluated, 96 (for a
    /// prepared key 128) for each variable and then 32 more for those in A.
    ///
    /// # Errors
    /// [`KeyError::Unconstrained`] for a variable that occurs in no row: its point of `l`
    /// would be the identity, which no key holds.
    pub fn new(
        circuit: &CompiledCircuit,
        secrets: &Trapdoor,
        form: KeyForm,
        progress: &dyn Progress,
    ) -> Result<Self, KeyError> {
        let shape = circuit.shape();
        let n = shape.domain();
        let coset = match form {
            KeyForm::Published => None,
            KeyForm::Prepared => Some(CosetQuery::new(secrets, n).ok_or(KeyError::UnluckySeed)?),
        };
        let Columns {
            u,
            v,
            mut w,
            folded,
        } = Columns::new(circuit, &secrets.tau, form, progress);

        let invert = |secret: &Scalar| secret.invert().expect("invariant: secrets are not zero");
        let (by_gamma, by_delta) = (invert(&secrets.gamma), invert(&secrets.delta));
        w.par_iter_mut()
            .zip(u.par_iter().zip(&v))
            .enumerate()
            .for_each(|(j, (w, (u, v)))| {
                let by = if j < shape.inputs { by_gamma } else { by_delta };
                *w = (secrets.beta * u + secrets.alpha * v + *w) * by;
            });
        if let Some(j) = w.par_iter().position_first(|value| value.is_zero().into()) {
            return Err(KeyError::Unconstrained {
                variable: variable(j, shape.inputs),
            });
        }
        let ic = w[..shape.inputs].to_vec();
        if let Some(folded) = folded {
            w[..shape.inputs].fill(Scalar::ZERO);
            w.par_iter_mut()
                .zip(folded)
                .for_each(|(l, folded)| *l += folded * by_delta);
        }

        let density = circuit.density();
        let u = kept(&u, |j| {
            j < shape.inputs || density.a_aux.get(j - shape.inputs)
        });
        let v = kept(&v, |j| match j.checked_sub(shape.inputs) {
            None => density.b_inputs.get(j),
            Some(aux) => density.b_aux.get(aux),
        });
        for values in [&u, &v] {
            if values.par_iter().any(|value| value.is_zero().into()) {
                return Err(KeyError::UnluckySeed);
            }
        }
        Ok(Queries {
            ic,
            all_l: w,
            a: u,
            b: v,
            tau: secrets.tau,
            h_scale: vanishing(&secrets.tau, n) * by_delta,
            coset,
        })
    }

    /// Whether these are a prepared key's.
    pub fn is_prepared(&self) -> bool {
        self.coset.is_some()
    }

    /// Published: (β·u_j + α·v_j + w_j)(τ)/δ of the auxiliary variables. Prepared: what C adds,
    /// for the inputs, then both, for the auxiliary variables.
    pub fn l(&self) -> &[Scalar] {
        match self.coset {
            None => &self.all_l[self.ic.len()..],
            Some(_) => &self.all_l,
        }
    }

    /// Fills `out` with h from index `start` on: τ^i·Z(τ)/δ, or a prepared key's e_i.
    pub fn h(&self, start: usize, out: &mut [Scalar]) {
        if let Some(coset) = &self.coset {
            return coset.fill(start, out);
        }
        let mut value = self.h_scale * self.tau.pow_vartime([start as u64]);
        for out in out {
            *out = value;
            value *= self.tau;
        }
    }
}

/// The values whose index is wanted, in order, on all threads.
fn kept(values: &[Scalar], wanted: impl Fn(usize) -> bool + Sync) -> Vec<Scalar> {
    let blocks = values.par_chunks(BLOCK).enumerate();
    let is_wanted = |block: usize, i: usize| wanted(block * BLOCK + i);
    let counts: Vec<usize> = blocks
        .clone()
        .map(|(block, values)| (0..values.len()).filter(|i| is_wanted(block, *i)).count())
        .collect();
    let mut out = zeros(counts.iter().sum());
    let mut rest = out.as_mut_slice();
    let mut places = Vec::with_capacity(counts.len());
    for count in counts {
        let (place, after) = rest.split_at_mut(count);
        places.push(place);
        rest = after;
    }
    blocks.zip(places).for_each(|((block, values), place)| {
        let kept = (0..values.len()).filter(|i| is_wanted(block, *i));
        for (out, i) in place.iter_mut().zip(kept) {
            *out = values[i];
        }
    });
    out
}

/// The variable of column `j`: inputs come first. Circuits have less than 2^32 columns.
fn variable(j: usize, inputs: usize) -> Variable {
    if j < inputs {
        Variable::Input(j as u32)
    } else {
        Variable::Aux((j - inputs) as u32)
    }
}
