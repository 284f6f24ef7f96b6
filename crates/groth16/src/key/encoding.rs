//! Point encodings of BLS12-381 as key files hold them.
//!
//! *Published*: a base field element is 48 bytes, big-endian, canonical (below p). G1 = x | y,
//! G2 = x.c1 | x.c0 | y.c1 | y.c0. The three top bits of the first byte are flags (compressed,
//! infinity, sign); in a key file none of them is ever set, and no point is the identity.
//!
//! *Montgomery*: a base field element is its value times 2^384 mod p, 48 bytes, little-endian,
//! below p. G1 = x | y, G2 = x.c0 | x.c1 | y.c0 | y.c1. The identity is all zeros. These are
//! the bytes of the points in memory on little-endian machines: nothing has to be computed.

use std::fmt;

use blst::{blst_fp, blst_fp2, blst_p1_affine, blst_p2_affine};
use blstrs::{G1Affine, G2Affine};
use group::prime::PrimeCurveAffine;

/// Bytes of one base field element.
const FP_BYTES: usize = 48;
/// Top three bits of the first byte: compressed, infinity, sign.
const COMPRESSED: u8 = 0x80;
const INFINITY: u8 = 0x40;
const SIGN: u8 = 0x20;

/// The base field's modulus p as six big-endian 64-bit words, most significant first.
const MODULUS: [u64; 6] = [
    0x1a01_11ea_397f_e69a,
    0x4b1b_a7b6_434b_acd7,
    0x6477_4b84_f385_12bf,
    0x6730_d2a0_f6b0_f624,
    0x1eab_fffe_b153_ffff,
    0xb9fe_ffff_ffff_aaab,
];

/// How a file holds its points. Both take the same number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointEncoding {
    /// Uncompressed, big-endian, never the identity.
    Published,
    /// Coordinates as little-endian limbs in Montgomery form; the identity is all zeros.
    Montgomery,
}

impl PointEncoding {
    /// Decodes `bytes` (exactly [`KeyPoint::BYTES`] long); see [`KeyPoint::decode`].
    ///
    /// # Errors
    /// The first fault found.
    #[inline]
    pub fn decode<P: KeyPoint>(self, bytes: &[u8]) -> Result<P, PointFault> {
        match self {
            PointEncoding::Published => P::decode(bytes),
            PointEncoding::Montgomery => P::decode_montgomery(bytes),
        }
    }

    /// Writes `point` to `out` (exactly [`KeyPoint::BYTES`] long).
    #[inline]
    pub fn encode<P: KeyPoint>(self, point: &P, out: &mut [u8]) {
        match self {
            PointEncoding::Published => point.encode(out),
            PointEncoding::Montgomery => point.encode_montgomery(out),
        }
    }
}

/// What is wrong with an encoded point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointFault {
    /// The compressed flag is set where uncompressed points belong.
    Compressed,
    /// The point at infinity, which no key holds.
    Infinity,
    /// A sign flag, which only a compressed point may carry.
    StrayFlag,
    /// A coordinate is not below the field's modulus.
    NotCanonical,
    /// The coordinates do not satisfy the curve equation.
    NotOnCurve,
    /// On the curve, but outside the subgroup of prime order.
    NotInSubgroup,
}

impl fmt::Display for PointFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PointFault::Compressed => "has the flag of a compressed point",
            PointFault::Infinity => "is the point at infinity",
            PointFault::StrayFlag => "has a sign flag that uncompressed points do not carry",
            PointFault::NotCanonical => "has a coordinate that is not below the field's modulus",
            PointFault::NotOnCurve => "does not lie on the curve",
            PointFault::NotInSubgroup => "is not in the subgroup of prime order",
        })
    }
}

/// An affine point that key files hold.
pub trait KeyPoint: PrimeCurveAffine + Default + Send + Sync {
    /// Bytes of the uncompressed encoding: 96 for G1, 192 for G2.
    const BYTES: usize;
    /// "G1" or "G2".
    const GROUP: &'static str;

    /// Decodes `bytes` (exactly [`Self::BYTES`] long) into Montgomery form.
    ///
    /// Checks flags and canonical coordinates, not the curve equation: see [`Self::on_curve`].
    ///
    /// # Errors
    /// The first fault found.
    fn decode(bytes: &[u8]) -> Result<Self, PointFault>;

    /// Writes the uncompressed encoding to `out` (exactly [`Self::BYTES`] long).
    fn encode(&self, out: &mut [u8]);

    /// Decodes [`PointEncoding::Montgomery`]: checks that the coordinates are below p, and
    /// neither the curve equation nor that the point is finite.
    ///
    /// # Errors
    /// [`PointFault::NotCanonical`].
    fn decode_montgomery(bytes: &[u8]) -> Result<Self, PointFault>;

    /// Writes [`PointEncoding::Montgomery`] to `out` (exactly [`Self::BYTES`] long).
    fn encode_montgomery(&self, out: &mut [u8]);

    /// Whether the coordinates satisfy the curve equation.
    fn on_curve(&self) -> bool;

    /// Whether a point of the curve lies in the subgroup of prime order.
    fn in_subgroup(&self) -> bool;

    /// Decodes and checks everything: what a verifying key's points go through.
    ///
    /// # Errors
    /// The first fault found.
    fn decode_checked(bytes: &[u8]) -> Result<Self, PointFault> {
        let point = Self::decode(bytes)?;
        if !point.on_curve() {
            return Err(PointFault::NotOnCurve);
        }
        if !point.in_subgroup() {
            return Err(PointFault::NotInSubgroup);
        }
        Ok(point)
    }
}

impl KeyPoint for G1Affine {
    const BYTES: usize = 2 * FP_BYTES;
    const GROUP: &'static str = "G1";

    #[inline]
    fn decode(bytes: &[u8]) -> Result<Self, PointFault> {
        check_flags(bytes[0])?;
        let (x, y) = bytes.split_at(FP_BYTES);
        let mut point = G1Affine::default();
        let raw: &mut blst_p1_affine = point.as_mut();
        raw.x = decode_fp(x)?;
        raw.y = decode_fp(y)?;
        finite(point)
    }

    fn encode(&self, out: &mut [u8]) {
        out.copy_from_slice(&self.to_uncompressed());
    }

    #[inline]
    fn decode_montgomery(bytes: &[u8]) -> Result<Self, PointFault> {
        let (x, y) = bytes.split_at(FP_BYTES);
        let mut point = G1Affine::default();
        let raw: &mut blst_p1_affine = point.as_mut();
        raw.x = decode_limbs(x)?;
        raw.y = decode_limbs(y)?;
        Ok(point)
    }

    #[inline]
    fn encode_montgomery(&self, out: &mut [u8]) {
        let raw: &blst_p1_affine = self.as_ref();
        encode_limbs([&raw.x, &raw.y], out);
    }

    fn on_curve(&self) -> bool {
        self.is_on_curve().into()
    }

    fn in_subgroup(&self) -> bool {
        self.is_torsion_free().into()
    }
}

impl KeyPoint for G2Affine {
    const BYTES: usize = 4 * FP_BYTES;
    const GROUP: &'static str = "G2";

    #[inline]
    fn decode(bytes: &[u8]) -> Result<Self, PointFault> {
        check_flags(bytes[0])?;
        let (x, y) = bytes.split_at(2 * FP_BYTES);
        let mut point = G2Affine::default();
        let raw: &mut blst_p2_affine = point.as_mut();
        raw.x = decode_fp2(x)?;
        raw.y = decode_fp2(y)?;
        finite(point)
    }

    fn encode(&self, out: &mut [u8]) {
        out.copy_from_slice(&self.to_uncompressed());
    }

    #[inline]
    fn decode_montgomery(bytes: &[u8]) -> Result<Self, PointFault> {
        let (x, y) = bytes.split_at(2 * FP_BYTES);
        let mut point = G2Affine::default();
        let raw: &mut blst_p2_affine = point.as_mut();
        for (fp2, bytes) in [(&mut raw.x, x), (&mut raw.y, y)] {
            let (c0, c1) = bytes.split_at(FP_BYTES);
            fp2.fp = [decode_limbs(c0)?, decode_limbs(c1)?];
        }
        Ok(point)
    }

    #[inline]
    fn encode_montgomery(&self, out: &mut [u8]) {
        let raw: &blst_p2_affine = self.as_ref();
        let ([x0, x1], [y0, y1]) = (&raw.x.fp, &raw.y.fp);
        encode_limbs([x0, x1, y0, y1], out);
    }

    fn on_curve(&self) -> bool {
        self.is_on_curve().into()
    }

    fn in_subgroup(&self) -> bool {
        self.is_torsion_free().into()
    }
}

/// Refuses every flag; infinity is named even when the compressed flag is absent.
#[inline]
fn check_flags(first: u8) -> Result<(), PointFault> {
    if first & (COMPRESSED | INFINITY | SIGN) == 0 {
        return Ok(());
    }
    Err(if first & COMPRESSED != 0 {
        PointFault::Compressed
    } else if first & INFINITY != 0 {
        PointFault::Infinity
    } else {
        PointFault::StrayFlag
    })
}

/// (0, 0) is how blst marks the identity in memory; it is not on either curve.
#[inline]
fn finite<P: KeyPoint>(point: P) -> Result<P, PointFault> {
    if point.is_identity().into() {
        return Err(PointFault::Infinity);
    }
    Ok(point)
}

#[inline]
fn decode_fp2(bytes: &[u8]) -> Result<blst_fp2, PointFault> {
    let (c1, c0) = bytes.split_at(FP_BYTES);
    Ok(blst_fp2 {
        fp: [decode_fp(c0)?, decode_fp(c1)?],
    })
}

/// 48 big-endian bytes, canonical, to Montgomery form (times 2^384 mod p).
#[inline]
fn decode_fp(bytes: &[u8]) -> Result<blst_fp, PointFault> {
    let mut words = [0u64; 6];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_be_bytes(bytes.try_into().expect("invariant: chunks of eight bytes"));
    }
    // Arrays compare lexicographically: most significant word first.
    if words >= MODULUS {
        return Err(PointFault::NotCanonical);
    }
    words.reverse();
    let mut out = blst_fp::default();
    // SAFETY: both pointers are to live values of six 64-bit words, as blst expects.
    unsafe { blst::blst_fp_from_uint64(&mut out, words.as_ptr()) };
    Ok(out)
}

/// 48 little-endian bytes below p, taken as they are.
#[inline]
fn decode_limbs(bytes: &[u8]) -> Result<blst_fp, PointFault> {
    let mut out = blst_fp::default();
    for (limb, bytes) in out.l.iter_mut().zip(bytes.chunks_exact(8)) {
        *limb = u64::from_le_bytes(bytes.try_into().expect("invariant: chunks of eight bytes"));
    }
    // Most significant word first on both sides.
    if out.l.iter().rev().lt(&MODULUS) {
        Ok(out)
    } else {
        Err(PointFault::NotCanonical)
    }
}

#[inline]
fn encode_limbs<const N: usize>(elements: [&blst_fp; N], out: &mut [u8]) {
    let limbs = elements.into_iter().flat_map(|element| &element.l);
    for (limb, out) in limbs.zip(out.chunks_exact_mut(8)) {
        out.copy_from_slice(&limb.to_le_bytes());
    }
}
