//! Factors in the form that the kernels multiply by.

use std::sync::LazyLock;

use blstrs::Scalar;
use ff::{Field, PrimeField};
use groth16::fr::Limbs;

use crate::device::Pod;

/// W as W·2^128 and W·2^256 modulo r: `ntt::Factor` of the kernels.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub struct Factor {
    low: Scalar,
    high: Scalar,
}

// SAFETY: sixteen words of limbs, any of which may be held, without padding.
unsafe impl Pod for Factor {}

/// Its bytes, Montgomery form, are the number 2^128: 2^128 / 2^256.
static HALF: LazyLock<Scalar> = LazyLock::new(|| {
    let inverse = Scalar::from(2)
        .invert()
        .expect("invariant: 2 is not 0 in Fr");
    inverse.pow_vartime([128])
});

impl Factor {
    /// Its limbs, in four pieces.
    pub fn quarters(&self) -> [[u64; 2]; 4] {
        let words = |scalar: &Scalar| *Limbs::from(*scalar).words();
        let [a, b, c, d] = words(&self.low);
        let [e, f, g, h] = words(&self.high);
        [[a, b], [c, d], [e, f], [g, h]]
    }
}

impl From<Scalar> for Factor {
    fn from(w: Scalar) -> Self {
        Factor {
            low: w * *HALF,
            high: w,
        }
    }
}

/// The root of unity of order 2^`log`: for each the square of the next.
pub fn root_of_order(log: u32) -> Scalar {
    assert!(log <= Scalar::S, "Fr has no root of unity of order 2^{log}");
    let mut root = Scalar::ROOT_OF_UNITY;
    for _ in log..Scalar::S {
        root = root.square();
    }
    root
}

/// `first`, `first`·`step`, `first`·`step`², …
pub fn powers(first: Scalar, step: Scalar, len: usize) -> Vec<Scalar> {
    std::iter::successors(Some(first), |power| Some(*power * step))
        .take(len)
        .collect()
}

/// 1/2^`log`.
pub fn inverse_of_size(log: u32) -> Scalar {
    let half = Scalar::from(2)
        .invert()
        .expect("invariant: 2 is not 0 in Fr");
    half.pow_vartime([u64::from(log)])
}

/// R^-1 for R = 2^256. The product of an element in Montgomery form with it has the limbs of the
/// element itself, in canonical form.
pub fn montgomery_inverse() -> Scalar {
    inverse_of_size(256)
}
