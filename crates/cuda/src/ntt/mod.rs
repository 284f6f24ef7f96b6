//! Number-theoretic transforms over Fr and the quotient polynomial.
//!
//! # Orders
//!
//! Values are in natural order and coefficients in bit-reversed order: [`Direction::Interpolate`]
//! goes from the former to the latter and [`Direction::Evaluate`] back. So a witness's rows, which
//! come in natural order, need no permutation before the first transform, and the values on the coset
//! are in natural order again. Only the coefficients of H are put in natural order, by the
//! step that subtracts them.
//!
//! # Roots
//!
//! ω_n = 7^((r−1)/n), as in bellperson's domain. The coset is g·⟨ω⟩ with g² = ω: there
//! x^n = −1, which the quotient needs, and g's powers merge with those of ω (see
//! `kernels/ntt/passes.cu`).
//!
//! # Costs
//!
//! A transform of 2^27 elements takes three passes. Products of an element with a factor of a
//! table cost 92 products of limbs (`kernels/ntt/lazy.cuh`); an element has 3¼ of them a pass and
//! three more between passes: 12¾ in all, where one butterfly after the other would take 13½ and
//! their factors besides.

mod factor;
mod levels;
mod measure;
mod multiples;
mod passes;
mod quotient;
mod transform;

pub use factor::Factor;
pub(crate) use factor::{inverse_of_size, powers, root_of_order};
pub use measure::measure;
pub use quotient::{Quotient, QuotientForm, QuotientPlan};
pub use transform::{Direction, LOG_SIZE_MAX, Ntt, NttPlan, Scale, Transform};
