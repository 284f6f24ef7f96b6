// Multiples of one base point by many scalars.
//
// A table holds the multiples d * 2^(width w) * base, d = 1 ... 2^(width - 1), for every window w of
// `width` bits. A scalar's multiple is the sum of one of them (or its opposite) a window. Tables
// of hundreds of megabytes pay: a gather of a point from device memory takes a fifth of the time of
// the addition that it feeds.
#pragma once

#include "curve/normalise.cuh"
#include "msm/signed.cuh"

namespace cuzk {

constexpr u32 FIXED_BASE_THREADS = 128;

template <class F>
struct FixedBaseParams {
    // len scalars, Montgomery.
    const Fr *scalars;
    // Window w's multiples from w << (width - 1) on.
    const Affine<F> *table;
    // len points.
    Affine<F> *points;
    // ZZ, ZZZ and a product for each row and thread: [3][rows][PARTS<F>][threads], rows being
    // ceil(len / threads).
    uint4 *kept;
    u32 len, windows, width;
    // Sum over the windows of 2^(width w + width - 1).
    u32 halves[SHIFTED_LIMBS];
};

// The scalar's multiple of the base; infinity for 0.
//
// No sum so far equals the next term or its opposite: it is s times the base with |s| at most half of
// 2^(width w) for the windows before w, the term d 2^(width w) with |d| >= 1, and both are less than
// r / 2, so that they are no nearer modulo r.
template <class F>
__device__ __forceinline__ Xyzz<F> multiple_of_base(const FixedBaseParams<F> &p, const Fr &scalar) {
    const Fr canonical = scalar.to_canonical();
    u32 value[SHIFTED_LIMBS];
#pragma unroll
    for (int i = 0; i < Fr::N; i++) value[i] = canonical.limb[i];
    value[SHIFTED_LIMBS - 1] = 0;
    const bool flipped = take_smaller_sign(value);
    Carry carry;
    value[0] = add_cc(value[0], p.halves[0], carry);
#pragma unroll
    for (int i = 1; i < SHIFTED_LIMBS - 1; i++) value[i] = addc_cc(value[i], p.halves[i], carry);
    value[SHIFTED_LIMBS - 1] = addc(value[SHIFTED_LIMBS - 1], p.halves[SHIFTED_LIMBS - 1], carry);

    const u32 half = 1u << (p.width - 1);
    Xyzz<F> sum = Xyzz<F>::infinity();
#pragma unroll 1
    for (u32 w = 0; w < p.windows; w++) {
        const u32 bits = value[0] & (2 * half - 1);
        shift_right(value, p.width);
        const bool negative = bits < half;
        const u32 magnitude = negative ? half - bits : bits - half;
        if (magnitude == 0) continue;
        Affine<F> term = p.table[u64(w) * half + magnitude - 1];
        term.y = negated_if(term.y, negative != flipped);
        if (sum.is_infinity()) {
            sum = {term.x, term.y, F::one(), F::one()};
        } else {
            sum.add_distinct(term);
        }
    }
    return sum;
}

// points[i] = scalars[i] * base, affine and reduced, with one inversion for all points of a thread.
// Grid: any number of blocks of FIXED_BASE_THREADS threads. Reads a scalar and a point a window,
// writes and reads three field elements, writes and reads a point, and writes it again.
template <class F>
__device__ __forceinline__ void multiply_base(const FixedBaseParams<F> &p) {
    normalise<F>(
        Rows(p.len), p.kept, [&](u32 i) { return multiple_of_base(p, p.scalars[i]); },
        [&](u32 i) { return p.points + i; });
}

}  // namespace cuzk
