//! The scalars behind a key's points: every variable's polynomials at τ.

use blstrs::Scalar;
use ff::Field;
use r1cs::{CompiledCircuit, Matrix, Variable};
use rayon::prelude::*;

use super::trapdoor::{Trapdoor, lagrange_at, vanishing, zeros};
use crate::key::KeyError;
use crate::progress::Progress;

/// Variables that a thread takes at a time.
const BLOCK: usize = 1 << 14;

/// Discrete logarithms of the key's vectors, in file order, identities left out.
pub(crate) struct Queries {
    /// (β·u_j + α·v_j + w_j)(τ)/γ of the inputs.
    pub ic: Vec<Scalar>,
    /// (β·u_j + α·v_j + w_j)(τ)/δ of the auxiliary variables.
    pub l: Vec<Scalar>,
    /// u_j(τ) of the inputs, then of the auxiliary variables in A.
    pub a: Vec<Scalar>,
    /// v_j(τ) of the inputs, then of the auxiliary variables, in B.
    pub b: Vec<Scalar>,
    tau: Scalar,
    /// Z(τ)/δ.
    h_scale: Scalar,
}

impl Queries {
    /// Evaluates all polynomials, on all threads.
    ///
    /// Needs 32 bytes for each point of the domain until the columns are evaluated, 96 for each
    /// variable and then 32 more for those in A.
    ///
    /// # Errors
    /// [`KeyError::Unconstrained`] for a variable that occurs in no row: its point of `l`
    /// would be the identity, which no key holds.
    pub fn new(
        circuit: &CompiledCircuit,
        secrets: &Trapdoor,
        progress: &dyn Progress,
    ) -> Result<Self, KeyError> {
        let shape = circuit.shape();
        let n = shape.domain();
        progress.begin("columns", 4);
        let (u, v, mut w) = {
            let lagrange = lagrange_at(&secrets.tau, n);
            progress.advance(1);
            let (rows, appended) = lagrange.split_at(shape.constraints);
            let column = |matrix| {
                let values = circuit.columns_at(matrix, rows);
                progress.advance(1);
                values
            };
            let mut u = column(Matrix::A);
            // The row input_i · 0 = 0 that follows the circuit's own, one for each input.
            for (u, lagrange) in u[..shape.inputs].iter_mut().zip(appended) {
                *u += lagrange;
            }
            (u, column(Matrix::B), column(Matrix::C))
        };

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
        let l = w.split_off(shape.inputs);

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
            ic: w,
            l,
            a: u,
            b: v,
            tau: secrets.tau,
            h_scale: vanishing(&secrets.tau, n) * by_delta,
        })
    }

    /// Fills `out` with τ^i·Z(τ)/δ for i = `start`, ….
    pub fn h(&self, start: usize, out: &mut [Scalar]) {
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
