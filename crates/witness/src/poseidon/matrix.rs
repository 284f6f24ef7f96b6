//! Square matrices over Fr, for deriving constants only: plain and slow.

use blstrs::Scalar as Fr;
use ff::Field;

/// A square matrix as its rows.
pub type Matrix = Vec<Vec<Fr>>;

/// The t × t Cauchy matrix with entries 1 / (xᵢ + yⱼ), xᵢ = i, yⱼ = t + j. Symmetric, and every
/// square submatrix is invertible (MDS).
pub fn cauchy(width: usize) -> Matrix {
    let entry = |i: usize, j: usize| {
        let sum = Fr::from((i + width + j) as u64);
        Option::from(sum.invert()).expect("invariant: 0 < i + t + j < 3t < r")
    };
    (0..width)
        .map(|i| (0..width).map(|j| entry(i, j)).collect())
        .collect()
}

/// The identity.
pub fn identity(size: usize) -> Matrix {
    let entry = |i, j| if i == j { Fr::ONE } else { Fr::ZERO };
    (0..size)
        .map(|i| (0..size).map(|j| entry(i, j)).collect())
        .collect()
}

/// A · B.
pub fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let columns = transpose(b);
    a.iter()
        .map(|row| columns.iter().map(|column| dot(row, column)).collect())
        .collect()
}

/// M · v.
pub fn apply(matrix: &Matrix, vector: &[Fr]) -> Vec<Fr> {
    matrix.iter().map(|row| dot(row, vector)).collect()
}

/// Mᵀ.
pub fn transpose(matrix: &Matrix) -> Matrix {
    (0..matrix.len())
        .map(|j| matrix.iter().map(|row| row[j]).collect())
        .collect()
}

/// M without its first row and column.
pub fn minor(matrix: &Matrix) -> Matrix {
    matrix[1..].iter().map(|row| row[1..].to_vec()).collect()
}

/// M⁻¹ by Gauss-Jordan elimination; None when M is singular.
pub fn invert(matrix: &Matrix) -> Option<Matrix> {
    let size = matrix.len();
    let mut left = matrix.clone();
    let mut right = identity(size);
    for column in 0..size {
        let pivot = (column..size).find(|&row| !bool::from(left[row][column].is_zero()))?;
        left.swap(column, pivot);
        right.swap(column, pivot);
        let scale: Fr = Option::from(left[column][column].invert())?;
        for entry in left[column].iter_mut().chain(&mut right[column]) {
            *entry *= scale;
        }
        for row in (0..size).filter(|&row| row != column) {
            let factor = left[row][column];
            for j in 0..size {
                let (l, r) = (left[column][j], right[column][j]);
                left[row][j] -= factor * l;
                right[row][j] -= factor * r;
            }
        }
    }
    Some(right)
}

fn dot(a: &[Fr], b: &[Fr]) -> Fr {
    a.iter().zip(b).map(|(a, b)| *a * b).sum()
}
