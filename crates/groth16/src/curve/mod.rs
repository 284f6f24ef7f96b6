//! Affine points of G1 and G2, and their addition by the batch.

mod batch_add;
#[cfg(target_arch = "x86_64")]
mod ifma;
mod portable;
mod sum;
#[cfg(test)]
mod tests;

use blst::{blst_fp, blst_fp2};
use blstrs::{G1Affine, G2Affine, Scalar};
use group::prime::PrimeCurveAffine;

pub use crate::kernel::Kernel;
pub use batch_add::{BatchAdder, Pick};
pub use sum::PointSum;

/// A point of G1 or G2 in affine coordinates, in Montgomery form; (0, 0) is the identity.
///
/// Implemented by `blstrs::G1Affine` and `G2Affine` and closed to others: the kernels depend
/// on the layout of these two.
pub trait AffinePoint:
    PrimeCurveAffine<Scalar = Scalar> + Default + Send + Sync + sealed::Coordinates
{
}

impl AffinePoint for G1Affine {}
impl AffinePoint for G2Affine {}

pub(crate) mod sealed {
    use super::batch_add::BlockAdd;
    use super::portable::Field;
    use crate::kernel::Kernel;

    /// What the kernels need to see of a point.
    pub trait Coordinates: Sized {
        /// The field of the coordinates.
        type Base: Field;

        /// x and y; (0, 0) for the identity.
        fn coordinates(&self) -> (Self::Base, Self::Base);

        /// The point (x, y), which must lie on the curve or be (0, 0).
        fn from_coordinates(x: Self::Base, y: Self::Base) -> Self;

        /// An adder of blocks that runs on `kernel`.
        fn block_adder(kernel: Kernel) -> Box<dyn BlockAdd<Self> + Send>;
    }
}

impl sealed::Coordinates for G1Affine {
    type Base = blst_fp;

    #[inline]
    fn coordinates(&self) -> (blst_fp, blst_fp) {
        (self.as_ref().x, self.as_ref().y)
    }

    #[inline]
    fn from_coordinates(x: blst_fp, y: blst_fp) -> Self {
        let mut point = G1Affine::default();
        point.as_mut().x = x;
        point.as_mut().y = y;
        point
    }

    fn block_adder(kernel: Kernel) -> Box<dyn batch_add::BlockAdd<Self> + Send> {
        match kernel {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Ifma => match ifma::G1Adder::new() {
                Some(adder) => Box::new(adder),
                None => Box::new(portable::PortableAdder::new()),
            },
            _ => Box::new(portable::PortableAdder::new()),
        }
    }
}

impl sealed::Coordinates for G2Affine {
    type Base = blst_fp2;

    #[inline]
    fn coordinates(&self) -> (blst_fp2, blst_fp2) {
        (self.as_ref().x, self.as_ref().y)
    }

    #[inline]
    fn from_coordinates(x: blst_fp2, y: blst_fp2) -> Self {
        let mut point = G2Affine::default();
        point.as_mut().x = x;
        point.as_mut().y = y;
        point
    }

    fn block_adder(kernel: Kernel) -> Box<dyn batch_add::BlockAdd<Self> + Send> {
        match kernel {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Ifma => match ifma::G2Adder::new() {
                Some(adder) => Box::new(adder),
                None => Box::new(portable::PortableAdder::new()),
            },
            _ => Box::new(portable::PortableAdder::new()),
        }
    }
}
