//! Field elements as bits and words.
//!
//! The circuits take a field element apart with `AllocatedNum::to_bits_le`, which allocates 255
//! bits, least significant first. Hashing puts them into byte order, most significant bit of each
//! byte first, and fills up with a constant zero: the element's little-endian bytes, whose topmost
//! bit is no variable.

use blstrs::Scalar as Fr;
use ff::PrimeField;

use crate::Writer;
use crate::word::Word;

/// Bits of a field element.
pub const BITS: u32 = 255;

/// The constant bit in the last word of [`words`].
const TOP_BIT: u32 = 0x80;

/// Appends the 255 bits of a canonical element given as 32 little-endian bytes.
pub fn to_bits(bytes: &[u8; 32], writer: &mut Writer<'_>) {
    let (limbs, _) = bytes.as_chunks::<8>();
    for (i, limb) in limbs.iter().enumerate() {
        let count = if i == 3 { BITS - 192 } else { 64 };
        writer.bits(u64::from_le_bytes(*limb), count);
    }
}

/// An element's allocated bits as message words of a hash.
pub fn words(bytes: &[u8; 32]) -> [Word; 8] {
    let (chunks, _) = bytes.as_chunks::<4>();
    std::array::from_fn(|i| {
        let constant = if i == 7 { TOP_BIT } else { 0 };
        Word::mixed(u32::from_be_bytes(chunks[i]), constant)
    })
}

/// A digest as a field element: its bytes little-endian without the two topmost bits.
pub fn truncate(mut digest: [u8; 32]) -> [u8; 32] {
    digest[31] &= 0x3f;
    digest
}

/// The element of 32 canonical little-endian bytes.
///
/// # Panics
/// If the number is not below the modulus.
pub fn element(bytes: &[u8; 32]) -> Fr {
    Option::from(Fr::from_repr(*bytes)).expect("invariant: callers pass canonical bytes")
}
