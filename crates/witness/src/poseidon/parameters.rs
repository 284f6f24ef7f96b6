//! The constants of one Poseidon instance, derived from its width alone.
//!
//! Instance: BLS12-381's Fr, S-box x^5, 128-bit security with the authors' margin (two more
//! full rounds, 7.5 % more partial rounds). Derivation takes a few milliseconds per width.

use super::grain::round_constants;
use super::matrix::{self, Matrix};
use blstrs::Scalar as Fr;

/// Numbers of full and partial rounds (R_F, R_P) for a width of t elements.
///
/// The cheapest pair (fewest S-boxes, t · R_F + R_P) among those which, before the margin is
/// added, withstand the attacks in the Poseidon paper: statistical (R_F ≥ 6), interpolation,
/// and the two Gröbner-basis bounds. The paper's script reckons with n = 256 bits and so do we.
pub fn round_numbers(width: usize) -> (usize, usize) {
    const FIELD_BITS: f64 = 256.0;
    const SECURITY_BITS: f64 = 128.0;
    let t = width as f64;
    let least_full_rounds = |partial: usize| -> usize {
        let partial = partial as f64;
        let statistical = 6.0;
        let interpolation = 0.43 * SECURITY_BITS + t.log2() - partial;
        let groebner_1 = 0.21 * FIELD_BITS - partial;
        let groebner_2 = (0.14 * FIELD_BITS - 1.0 - partial) / (t - 1.0);
        let bounds = [interpolation, groebner_1, groebner_2];
        let most = bounds.into_iter().fold(statistical, f64::max).ceil() as usize;
        most.next_multiple_of(2)
    };
    (4..200)
        .map(|partial| {
            let full = least_full_rounds(partial) + 2;
            let partial = (1.075 * partial as f64).ceil() as usize;
            (full, partial)
        })
        .min_by_key(|&(full, partial)| (width * full + partial, full))
        .expect("invariant: the range is not empty")
}

/// What the plain round function needs.
pub struct Parameters {
    /// R_F: full rounds, half of them before the partial ones.
    pub full_rounds: usize,
    /// R_P: partial rounds.
    pub partial_rounds: usize,
    /// One key of t elements per round, added before the S-boxes.
    pub round_keys: Vec<Vec<Fr>>,
    /// The symmetric MDS matrix.
    pub mds: Matrix,
}

impl Parameters {
    /// Derives the parameters of the permutation of `width` elements.
    pub fn new(width: usize) -> Parameters {
        let (full_rounds, partial_rounds) = round_numbers(width);
        let constants = round_constants(width, full_rounds, partial_rounds);
        Parameters {
            full_rounds,
            partial_rounds,
            round_keys: constants.chunks(width).map(<[Fr]>::to_vec).collect(),
            mds: matrix::cauchy(width),
        }
    }
}

/// The same permutation with the keys moved behind the S-boxes and the partial rounds' matrices made sparse.
///
/// Notation: states are row vectors, one round is s ← S(s + k) · M.
///
/// *Keys.* (S(s) · M) + k = (S(s) + k · M⁻¹) · M, so a key can be added before the mixing of the
/// round in front of it. In a partial round all but the first element pass the S-box unchanged,
/// so all but the first element of a moved key can be added even before it and move on to
/// the round in front. What remains is one element of key per partial round.
///
/// *Matrices.* M = M' · M'' with M' = diag(1, M̂), M̂ the minor of M, and M'' the identity
/// but for its first row and column. M' leaves the first element alone, so it changes place with
/// the partial round's S-box and multiplies the matrix of the round in front: M · M' is split in its turn.
pub struct Schedule {
    /// Added to the state before the first round.
    pub first_key: Vec<Fr>,
    /// Keys of the full rounds, added behind their S-boxes; the very last round has none.
    pub full_keys: Vec<Vec<Fr>>,
    /// Keys of the partial rounds, added to the first element behind its S-box.
    pub partial_keys: Vec<Fr>,
    /// Matrix of the last full round before the partial rounds.
    pub pre_sparse: Matrix,
    /// M'' of every partial round.
    pub sparse: Vec<SparseMatrix>,
}

/// A matrix that is the identity but for its first column and first row.
pub struct SparseMatrix {
    /// The first column, t elements.
    pub column: Vec<Fr>,
    /// The first row without the corner, t - 1 elements.
    pub row: Vec<Fr>,
}

impl Schedule {
    /// Rewrites `parameters`.
    pub fn new(parameters: &Parameters) -> Schedule {
        let Parameters {
            full_rounds,
            partial_rounds,
            round_keys,
            mds,
        } = parameters;
        let half = full_rounds / 2;
        let inverse = matrix::invert(mds).expect("invariant: an MDS matrix is invertible");
        // M is symmetric, so is its inverse, and M⁻¹ · k is k · M⁻¹.
        let moved = |key: &[Fr]| matrix::apply(&inverse, key);

        let mut partial_keys = vec![Fr::default(); *partial_rounds];
        let mut key = round_keys[half + partial_rounds].clone();
        for round in (0..*partial_rounds).rev() {
            let mut rest = moved(&key);
            partial_keys[round] = std::mem::take(&mut rest[0]);
            key = rest
                .iter()
                .zip(&round_keys[half + round])
                .map(|(a, b)| *a + b)
                .collect();
        }

        let before = round_keys[1..half].iter().map(|key| moved(key));
        let after = round_keys[half + partial_rounds + 1..]
            .iter()
            .map(|key| moved(key));
        let full_keys = before.chain([moved(&key)]).chain(after).collect();

        let mut sparse = Vec::with_capacity(*partial_rounds);
        let mut current = mds.clone();
        for _ in 0..*partial_rounds {
            let (dense_factor, sparse_factor) = factor(&current);
            sparse.push(sparse_factor);
            current = matrix::product(mds, &dense_factor);
        }
        sparse.reverse();
        Schedule {
            first_key: round_keys[0].clone(),
            full_keys,
            partial_keys,
            pre_sparse: current,
            sparse,
        }
    }
}

/// Splits M into (M', M''), M = M' · M''.
fn factor(m: &Matrix) -> (Matrix, SparseMatrix) {
    let size = m.len();
    let minor = matrix::minor(m);
    let inverse =
        matrix::invert(&minor).expect("invariant: minors of an MDS matrix are invertible");
    let first_column: Vec<Fr> = m[1..].iter().map(|row| row[0]).collect();
    let mut column = vec![m[0][0]];
    column.extend(matrix::apply(&inverse, &first_column));
    let mut dense = matrix::identity(size);
    for (row, minor_row) in dense[1..].iter_mut().zip(&minor) {
        row[1..].copy_from_slice(minor_row);
    }
    let row = m[0][1..].to_vec();
    (dense, SparseMatrix { column, row })
}
