//! What the AVX-512 kernels share: whether they may run, and the way from records in memory to
//! vectors of words.

use std::arch::x86_64::{
    __m512i, _mm256_loadu_si256, _mm256_storeu_si256, _mm512_castsi256_si512,
    _mm512_castsi512_si256, _mm512_extracti64x4_epi64, _mm512_inserti64x4,
    _mm512_permutex2var_epi64, _mm512_set_epi64, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
};

/// Whether this processor has the instructions that the kernels use: AVX-512 F and IFMA.
pub fn supported() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma")
}

/// Four consecutive 64-bit words of each of eight records, `stride` words apart: vector k holds
/// word k of every record.
///
/// # Safety
/// Needs avx512f, and `words` must be readable at i·stride … i·stride + 3 for i < 8.
#[inline(always)]
pub unsafe fn load_words(words: *const u64, stride: usize) -> [__m512i; 4] {
    // SAFETY: the caller's.
    unsafe {
        transpose([
            load_row(words, 0, stride),
            load_row(words, 1, stride),
            load_row(words, 2, stride),
            load_row(words, 3, stride),
        ])
    }
}

/// Four words of record i, then four of record i + 4.
///
/// # Safety
/// As [`load_words`].
#[inline(always)]
unsafe fn load_row(words: *const u64, i: usize, stride: usize) -> __m512i {
    // SAFETY: the caller's.
    unsafe {
        let low = _mm256_loadu_si256(words.add(i * stride).cast());
        let high = _mm256_loadu_si256(words.add((i + 4) * stride).cast());
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    }
}

/// The inverse of [`load_words`].
///
/// # Safety
/// Needs avx512f, and `words` must be writable at i·stride … i·stride + 3 for i < 8.
#[inline(always)]
pub unsafe fn store_words(vectors: [__m512i; 4], words: *mut u64, stride: usize) {
    // SAFETY: the caller's.
    unsafe {
        // A 4×4 transposition is its own inverse.
        for (i, row) in transpose(vectors).into_iter().enumerate() {
            _mm256_storeu_si256(words.add(i * stride).cast(), _mm512_castsi512_si256(row));
            _mm256_storeu_si256(
                words.add((i + 4) * stride).cast(),
                _mm512_extracti64x4_epi64::<1>(row),
            );
        }
    }
}

/// Transposes the 4×4 words in each half of the rows.
///
/// # Safety
/// Needs avx512f.
#[inline(always)]
unsafe fn transpose(rows: [__m512i; 4]) -> [__m512i; 4] {
    // SAFETY: the caller's.
    unsafe {
        // Even (odd) words of two rows, interleaved: a0 b0 a2 b2 | …
        let even01 = _mm512_unpacklo_epi64(rows[0], rows[1]);
        let odd01 = _mm512_unpackhi_epi64(rows[0], rows[1]);
        let even23 = _mm512_unpacklo_epi64(rows[2], rows[3]);
        let odd23 = _mm512_unpackhi_epi64(rows[2], rows[3]);
        // Words 0 and 1, or 2 and 3, of each half of two vectors; 8 marks the second one.
        let low = _mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0);
        let high = _mm512_set_epi64(15, 14, 7, 6, 11, 10, 3, 2);
        [
            _mm512_permutex2var_epi64(even01, low, even23),
            _mm512_permutex2var_epi64(odd01, low, odd23),
            _mm512_permutex2var_epi64(even01, high, even23),
            _mm512_permutex2var_epi64(odd01, high, odd23),
        ]
    }
}
