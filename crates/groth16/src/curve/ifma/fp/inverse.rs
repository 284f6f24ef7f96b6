//! Inverses of eight elements in this module's Montgomery form, by way of `blst`.

use blst::{blst_fp, blst_fp_inverse, blst_fp_mul};

use super::LANES;

/// 2^416 mod p in words: `blst_fp_mul` by it multiplies by 2^32.
pub const TIMES_2_32: blst_fp = blst_fp {
    l: [
        0x44f6_480e_a8e9_b9af,
        0xa96f_7d65_766c_8fe4,
        0xe82e_fd42_28b5_40fe,
        0x6723_e5f0_ade5_3b2e,
        0x25ff_6eb6_fdd4_230a,
        0x14c8_ee06_ef23_c24a,
    ],
};

/// v·2^32 for an integer v mod p.
pub fn times_2_32(v: &blst_fp) -> blst_fp {
    let mut out = blst_fp::default();
    // SAFETY: three valid pointers to field elements, two read, one written.
    unsafe { blst_fp_mul(&raw mut out, v, &TIMES_2_32) };
    out
}

/// Each v becomes 2^800/v mod p, and 0 stays 0, with one inversion for all.
///
/// `blst` takes the integer v for v/2^384, so its inverse is 2^768/v; 2^32 is missing.
pub fn invert_scaled(elements: &mut [blst_fp; LANES]) {
    let multiply = |a: &blst_fp, b: &blst_fp| {
        let mut out = blst_fp::default();
        // SAFETY: three valid pointers to field elements, two read, one written.
        unsafe { blst_fp_mul(&raw mut out, a, b) };
        out
    };
    let zero = blst_fp::default();
    let mut prefixes = [zero; LANES];
    let mut product: Option<blst_fp> = None;
    for (prefix, element) in prefixes.iter_mut().zip(&*elements) {
        if *element != zero {
            // The first prefix is never used: there is nothing before it to divide by.
            *prefix = product.unwrap_or_default();
            product = Some(product.map_or(*element, |product| multiply(&product, element)));
        }
    }
    let Some(product) = product else { return };
    let mut inverse = blst_fp::default();
    // SAFETY: two valid pointers to field elements, one read, one written.
    unsafe { blst_fp_inverse(&raw mut inverse, &product) };
    // With the factor here, every quotient below carries it.
    let mut inverse = times_2_32(&inverse);
    for (prefix, element) in prefixes.iter().zip(elements).rev() {
        if *element == zero {
            continue;
        }
        let next = multiply(&inverse, element);
        *element = if *prefix == zero {
            inverse
        } else {
            multiply(&inverse, prefix)
        };
        inverse = next;
    }
}
