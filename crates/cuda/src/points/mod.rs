//! A key's points on the device: from the bytes of the key's file to affine points in Montgomery
//! form.

mod decode;
mod gather;

pub(crate) use gather::gather;

pub use decode::{DecodePlan, Decoder, Fault, PointOrder};

use blstrs::{G1Affine, G2Affine};
use groth16::key::KeyPoint;

use crate::device::Pod;

/// A point that kernels know: G1 or G2.
pub trait DevicePoint: KeyPoint + Pod + sealed::Sealed {
    /// `G1` or `G2` in the names of kernels.
    #[doc(hidden)]
    const DECODE: &'static str;
    #[doc(hidden)]
    const CHECK: &'static str;
    #[doc(hidden)]
    const GATHER: &'static str;
}

impl DevicePoint for G1Affine {
    const DECODE: &'static str = "decode_g1";
    const CHECK: &'static str = "check_g1";
    const GATHER: &'static str = "gather_g1";
}

impl DevicePoint for G2Affine {
    const DECODE: &'static str = "decode_g2";
    const CHECK: &'static str = "check_g2";
    const GATHER: &'static str = "gather_g2";
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::G1Affine {}
    impl Sealed for super::G2Affine {}
}
