// Multiples of one base point by many scalars.
//
// A table holds the multiples d * 2^(width w) * base, d = 1 ... 2^(width - 1), for every window w of
// `width` bits. A scalar's multiple is the sum of one of them (or its opposite) a window. Tables
// of hundreds of megabytes pay: a gather of a point from device memory takes a fifth of the time of
// the addition that it feeds.
#pragma once

#include "curve/xyzz.cuh"
#include "msm/fold.cuh"
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
    const u32 threads = gridDim.x * blockDim.x;
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= p.len) return;
    const u32 all_rows = (p.len - 1) / threads + 1;
    const u32 rows = (p.len - 1 - thread) / threads + 1;
    auto kept = [&](u32 what, u32 row) {
        return p.kept + u64(what * all_rows + row) * PARTS<F> * threads + thread;
    };

    F product = F::one();
#pragma unroll 1
    for (u32 row = 0; row < rows; row++) {
        const u64 i = u64(row) * threads + thread;
        Xyzz<F> sum = multiple_of_base(p, p.scalars[i]);
        // Infinity is (0, 0, 0, 1) here: an inversion turns it into (0, 0).
        if (sum.is_infinity()) sum.zzz = F::one();
        p.points[i] = {sum.x, sum.y};
        store_parts(kept(0, row), threads, sum.zz);
        store_parts(kept(1, row), threads, sum.zzz);
        store_parts(kept(2, row), threads, product);
        product *= sum.zzz;
    }
    F inverted = inverse_call(product);
#pragma unroll 1
    for (u32 row = rows; row-- > 0;) {
        const u64 i = u64(row) * threads + thread;
        const F over_zzz = inverted * load_parts<F>(kept(2, row), threads);
        inverted *= load_parts<F>(kept(1, row), threads);
        // 1 / ZZ = (ZZ / ZZZ)^2.
        const F over_zz = (load_parts<F>(kept(0, row), threads) * over_zzz).squared();
        const Affine<F> point = p.points[i];
        p.points[i] = {point.x * over_zz, point.y * over_zzz};
    }
}

}  // namespace cuzk
