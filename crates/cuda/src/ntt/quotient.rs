//! From the values of A·w and B·w to the scalars of the H query.
//!
//! The algebra is that of `groth16::quotient`: on the coset where x^n = −1, the polynomial
//! Q = (A·B) mod (x^n + 1) equals C − 2H, and C has the values a_i·b_i.

use blstrs::Scalar;
use groth16::key::KeyForm;
use groth16::ntt::EvaluationSet::{Coset, Subgroup};

use crate::device::{Arena, Device, DeviceSlice, Kernel, Ledger, Params, Phase, Slot, Stream};
use crate::error::Result;
use crate::ntt::factor::{inverse_of_size, montgomery_inverse};
use crate::ntt::transform::{Ntt, NttPlan, Scale, Transform};
use crate::topic::Topic;

/// From this size on the difference goes through square tiles.
const TILED_LOG: u32 = 10;

/// 1/n.
const PER_SIZE: Scale = Scale(1);
/// R⁻¹/(2n), or R⁻¹/n for a prepared key: leaves canonical limbs.
const CANONICAL: Scale = Scale(2);

/// What the sum over the H query takes, which depends on the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotientForm {
    /// The coefficients of H = (C − Q)/2, lowest first, for the h query of a published parameter
    /// file: n of them, of which the last is zero. Six transforms, one more vector of n elements.
    Monomial,
    /// The values Q_i = A(g·ω^i)·B(g·ω^i), i = 0, 1, … n−1 in this, the natural order, for the
    /// points e_i of a prepared key. Four transforms, no further vector.
    Prepared,
}

impl From<KeyForm> for QuotientForm {
    fn from(form: KeyForm) -> Self {
        match form {
            KeyForm::Published => QuotientForm::Monomial,
            KeyForm::Prepared => QuotientForm::Prepared,
        }
    }
}

/// The quotient of one size, before there is a device.
#[derive(Debug, Clone)]
pub struct QuotientPlan {
    form: QuotientForm,
    ntt: NttPlan,
    c: Option<Slot<Scalar>>,
}

impl QuotientPlan {
    /// A quotient over the domain of 2^`log_size` elements. The vectors a and b are the caller's.
    ///
    /// # Panics
    /// As [`NttPlan::new`].
    pub fn new(log_size: u32, form: QuotientForm, ledger: &mut Ledger) -> Self {
        let canonical = match form {
            QuotientForm::Monomial => inverse_of_size(log_size + 1) * montgomery_inverse(),
            QuotientForm::Prepared => inverse_of_size(log_size) * montgomery_inverse(),
        };
        let scales = [inverse_of_size(log_size), canonical];
        QuotientPlan {
            form,
            ntt: NttPlan::new(log_size, &scales, ledger),
            c: (form == QuotientForm::Monomial)
                .then(|| ledger.reserve("ntt: c", 1 << log_size, Phase::Transform)),
        }
    }

    /// What it computes.
    pub fn form(&self) -> QuotientForm {
        self.form
    }

    /// Loads kernels and fills tables.
    ///
    /// # Errors
    /// A device that fails.
    pub fn bind(&self, device: &Device, arena: &Arena) -> Result<Quotient> {
        let tiled = self.ntt.log_size() >= TILED_LOG;
        Ok(Quotient {
            form: self.form,
            ntt: self.ntt.bind(device, arena)?,
            c: self.c.map(|slot| arena.get(slot)),
            multiply: device.kernel(Topic::Ntt, "ntt_multiply")?,
            difference: device.kernel(
                Topic::Ntt,
                if tiled {
                    "ntt_difference_reversed"
                } else {
                    "ntt_difference_reversed_small"
                },
            )?,
        })
    }
}

/// `MultiplyParams` of `kernels/ntt/pointwise.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct MultiplyParams {
    x: u64,
    y: u64,
    product: u64,
    len: u32,
}

// SAFETY: laid out as the C++ struct.
unsafe impl Params for MultiplyParams {}

/// `DifferenceParams` of `kernels/ntt/pointwise.cu`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DifferenceParams {
    x: u64,
    y: u64,
    difference: u64,
    bits: u32,
}

// SAFETY: laid out as the C++ struct.
unsafe impl Params for DifferenceParams {}

/// The quotient of one size on one device.
#[derive(Debug)]
pub struct Quotient {
    form: QuotientForm,
    ntt: Ntt,
    c: Option<DeviceSlice<Scalar>>,
    multiply: Kernel,
    difference: Kernel,
}

impl Quotient {
    /// What it computes.
    pub fn form(&self) -> QuotientForm {
        self.form
    }

    /// Queues the quotient of the values a_i and b_i: n each, Montgomery and reduced, in natural
    /// order, rows that do not exist zero. Both vectors are overwritten.
    ///
    /// Gives the place of the n scalars that [`QuotientForm`] names, canonical: the bytes of `b`.
    ///
    /// # Errors
    /// A device that fails.
    ///
    /// # Panics
    /// If `a` or `b` does not have n elements.
    pub fn run(
        &self,
        stream: &Stream,
        a: DeviceSlice<Scalar>,
        b: DeviceSlice<Scalar>,
    ) -> Result<DeviceSlice<[u32; 8]>> {
        match self.c {
            Some(c) => self.monomial(stream, a, b, c),
            None => self.prepared(stream, a, b),
        }
    }

    /// The transforms that it is made of.
    pub fn ntt(&self) -> &Ntt {
        &self.ntt
    }

    /// How many elements are multiplied by a factor.
    pub fn factor_products(&self) -> f64 {
        let products = |transform| self.ntt.factor_products(transform);
        let coset = products(Transform::evaluate(Coset));
        let vectors = 2.0 * (products(Transform::interpolate(Subgroup, PER_SIZE)) + coset);
        match self.form {
            QuotientForm::Monomial => {
                vectors
                    + products(Transform::interpolate(Subgroup, CANONICAL))
                    + products(Transform::interpolate(Coset, CANONICAL))
            }
            QuotientForm::Prepared => vectors,
        }
    }

    fn monomial(
        &self,
        stream: &Stream,
        a: DeviceSlice<Scalar>,
        b: DeviceSlice<Scalar>,
        c: DeviceSlice<Scalar>,
    ) -> Result<DeviceSlice<[u32; 8]>> {
        self.multiply(stream, a, b, c)?;
        for (vector, scale) in [(a, PER_SIZE), (b, PER_SIZE)] {
            let interpolate = Transform::interpolate(Subgroup, scale).unreduced();
            self.ntt.run(stream, vector, interpolate)?;
            self.ntt
                .run(stream, vector, Transform::evaluate(Coset).unreduced())?;
        }
        // Half of C, then half of Q.
        self.ntt.run(
            stream,
            c,
            Transform::interpolate(Subgroup, CANONICAL).unreduced(),
        )?;
        self.multiply(stream, a, b, a)?;
        self.ntt.run(
            stream,
            a,
            Transform::interpolate(Coset, CANONICAL).unreduced(),
        )?;
        self.difference(stream, c, a, b)?;
        Ok(b.cast())
    }

    fn prepared(
        &self,
        stream: &Stream,
        a: DeviceSlice<Scalar>,
        b: DeviceSlice<Scalar>,
    ) -> Result<DeviceSlice<[u32; 8]>> {
        // One of the factors canonical makes the product canonical.
        for (vector, scale) in [(a, CANONICAL), (b, PER_SIZE)] {
            let interpolate = Transform::interpolate(Subgroup, scale).unreduced();
            self.ntt.run(stream, vector, interpolate)?;
            self.ntt
                .run(stream, vector, Transform::evaluate(Coset).unreduced())?;
        }
        self.multiply(stream, a, b, b)?;
        Ok(b.cast())
    }

    /// product = x∘y; `product` may be `x` or `y`.
    fn multiply(
        &self,
        stream: &Stream,
        x: DeviceSlice<Scalar>,
        y: DeviceSlice<Scalar>,
        product: DeviceSlice<Scalar>,
    ) -> Result<()> {
        let params = MultiplyParams {
            x: x.ptr(),
            y: y.ptr(),
            product: product.ptr(),
            len: x.len() as u32,
        };
        stream.launch(&self.multiply, params.len.div_ceil(256), 256, 0, &params)
    }

    /// difference = x − y in natural order, x and y in bit-reversed order.
    fn difference(
        &self,
        stream: &Stream,
        x: DeviceSlice<Scalar>,
        y: DeviceSlice<Scalar>,
        difference: DeviceSlice<Scalar>,
    ) -> Result<()> {
        let bits = self.ntt.log_size();
        let params = DifferenceParams {
            x: x.ptr(),
            y: y.ptr(),
            difference: difference.ptr(),
            bits,
        };
        let blocks = if bits >= TILED_LOG {
            1 << (bits - TILED_LOG)
        } else {
            1 << bits.saturating_sub(8)
        };
        stream.launch(&self.difference, blocks, 256, 0, &params)
    }
}
