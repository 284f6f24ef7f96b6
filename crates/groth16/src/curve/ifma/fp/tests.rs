use blst::blst_fp_mul;

use super::inverse::TIMES_2_32;
use super::*;
use crate::avx512::supported;

/// Integers below p: 0, 1, p − 1 and such that every word and every limb is reached.
fn edges() -> Vec<blst_fp> {
    let p = [
        0xb9fe_ffff_ffff_aaab,
        0x1eab_fffe_b153_ffff,
        0x6730_d2a0_f6b0_f624,
        0x6477_4b84_f385_12bf,
        0x4b1b_a7b6_434b_acd7,
        0x1a01_11ea_397f_e69a_u64,
    ];
    let mut edges = vec![blst_fp::default(), TIMES_2_32];
    for (word, top) in p.iter().enumerate() {
        for value in [1, u64::MAX, 1 << 63, 0x000f_ffff_ffff_ffff] {
            let mut l = [0; 6];
            l[word] = value.min(top - 1);
            edges.push(blst_fp { l });
        }
    }
    let mut below = p;
    below[0] -= 1;
    edges.push(blst_fp { l: below });
    below[0] -= 1;
    edges.push(blst_fp { l: below });
    edges
}

fn blst_product(a: &blst_fp, b: &blst_fp) -> blst_fp {
    let mut out = blst_fp::default();
    // SAFETY: three valid pointers to field elements.
    unsafe { blst_fp_mul(&raw mut out, a, b) };
    out
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn shifted_product(a: &[blst_fp; 8], b: &[blst_fp; 8]) -> [blst_fp; 8] {
    // SAFETY: the features are those of this function.
    unsafe {
        let (a, b) = (Fp8::from_blst(a), Fp8::from_blst(b));
        a.shifted().mul(&b).canonical().to_blst()
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn scaled_inverse(a: &[blst_fp; 8]) -> [blst_fp; 8] {
    // SAFETY: the features are those of this function.
    unsafe { Fp8::from_blst(a).inverse_scaled().to_blst() }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn canonical_of(limbs: &[i64; 8]) -> [i64; 8] {
    let mut out = [0; 8];
    // SAFETY: the features are those of this function; a store writes 64 bytes.
    unsafe {
        let result = Fp8::canonical_from_estimate(constant(limbs));
        for (out, limb) in out.iter_mut().zip(result.0) {
            let mut lanes = [0_i64; 8];
            _mm512_storeu_si512(lanes.as_mut_ptr().cast(), limb);
            assert_eq!(lanes, [lanes[0]; 8]);
            *out = lanes[0];
        }
    }
    out
}

/// q·p + d for small d of both signs, and with limbs that still owe each other carries.
#[test]
fn estimates_next_to_multiples_of_the_modulus_are_put_right() {
    if !supported() {
        return;
    }
    for q in 0..4_usize {
        let multiple = MULTIPLES.map(|row| row[q]);
        for d in [-2, -1, 0, 1, 2, 1 << 51] {
            if q == 0 && d < 0 {
                continue;
            }
            let mut limbs = multiple;
            limbs[0] += d;
            let mut owing = limbs;
            for j in 1..8 {
                owing[j - 1] += 50 << LIMB;
                owing[j] -= 50;
            }
            let mut expected = if d < 0 { P } else { [0; 8] };
            expected[0] += d;
            for given in [limbs, owing] {
                // SAFETY: the processor has the features.
                assert_eq!(unsafe { canonical_of(&given) }, expected, "{q}p + {d}");
            }
        }
    }
}

#[test]
fn products_and_inverses_agree_with_blst() {
    if !supported() {
        return;
    }
    let edges = edges();
    for (i, a) in edges.iter().enumerate() {
        for (j, b) in edges.iter().enumerate() {
            // Other elements in the other lanes, so that a mixed-up lane shows.
            let lanes = |start: usize, first: &blst_fp| {
                std::array::from_fn(|k| match k {
                    0 => *first,
                    _ => edges[(start + 5 * k) % edges.len()],
                })
            };
            let (a, b): ([_; 8], [_; 8]) = (lanes(i, a), lanes(j + 1, b));
            // SAFETY: the processor has the features.
            let products = unsafe { shifted_product(&a, &b) };
            for k in 0..8 {
                assert_eq!(products[k], blst_product(&a[k], &b[k]), "lane {k}");
            }
        }
    }
    for start in 0..edges.len() {
        let a = std::array::from_fn(|k| edges[(start + k) % edges.len()]);
        // SAFETY: the processor has the features.
        let inverses = unsafe { scaled_inverse(&a) };
        for (a, inverse) in a.iter().zip(inverses) {
            // a · 2^800/a · 2^(−384) = 2^416.
            let expected = if *a == blst_fp::default() {
                *a
            } else {
                TIMES_2_32
            };
            assert_eq!(blst_product(a, &inverse), expected);
        }
    }
}
