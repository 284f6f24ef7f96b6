// Sums of products of field elements with one reduction at the end.
#pragma once

#include "common/kernel.cuh"
#include "field/fr.cuh"

namespace cuzk {

// A sum of at most 2^28 products of values below r: 17 limbs. With r < 2^255 a product is below
// 2^510 and the sum below 2^538.
struct ProductSum {
    u32 limb[17];

    __device__ __forceinline__ static ProductSum zero() {
        ProductSum sum;
#pragma unroll
        for (int k = 0; k < 17; k++) sum.limb[k] = 0;
        return sum;
    }

    // Adds x y: 64 multiply-adds and two chains of additions.
    __device__ __forceinline__ void add(const Fr &x, const Fr &y) {
        const Wide<8> product = Fr::multiply_wide(x, y);
        Carry carry;
        limb[0] = add_cc(limb[0], product.limb[0], carry);
#pragma unroll
        for (int k = 1; k < 16; k++) limb[k] = addc_cc(limb[k], product.limb[k], carry);
        limb[16] = addc(limb[16], 0, carry);
    }

    // The sum / R mod r: Montgomery, fully reduced, when the factors were Montgomery.
    //
    // First the high part H = floor(sum / R), below 2^282, is reduced modulo r, then the rest,
    // below r R, in the usual way. With t = 0x73eda753 the top limb of r and x = floor(H / 2^224),
    // below 2^58, the quotient's estimate q = floor(x floor(2^64 / (t + 1)) / 2^64) is at most H / r,
    // and H / r - q < 1 + (x + 1) / t - x / (t + 1) + x / 2^64 < 1 + 2^-3, as t (t + 1) > 2^61.7. So
    // H - q r is below 2 r, and 8 limbs hold it.
    __device__ __forceinline__ Fr reduce() const {
        const u64 top = u64(limb[16]) << 32 | limb[15];
        const u32 quotient = u32(__umul64hi(top, RECIPROCAL));
        Fr rest;
        u64 product = 0, borrow = 0;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            product = u64(quotient) * FrModulus::p(k) + (product >> 32);
            const u64 difference = u64(limb[8 + k]) - u32(product) - borrow;
            rest.limb[k] = u32(difference);
            borrow = difference >> 63;
        }
        rest = rest.below_p();
        Wide<8> wide;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            wide.limb[k] = limb[k];
            wide.limb[8 + k] = rest.limb[k];
        }
        return Fr::reduce(wide);
    }

  private:
    // floor(2^64 / 0x73eda754).
    static constexpr u64 RECIPROCAL = 0x2355094e9ull;
};

}  // namespace cuzk
