// The endomorphism of G1: (x, y) -> (beta x, y) is the multiplication by lambda = X^2 - 1, where
// X = -0xd201000000010000 is the parameter of BLS12-381 and r = X^4 - X^2 + 1. For points of the
// subgroup of order r alone.

#pragma once

#include "common/kernel.cuh"
#include "field/fr.cuh"
#include "jacobian.cuh"

namespace cuzk {

// |X|.
constexpr u64 CURVE_PARAMETER = 0xd201000000010000ull;

// Limb i of beta R mod p: a cube root of unity.
CUZK_FN constexpr uint32_t beta_limb(int i) {
    constexpr uint32_t limbs[12] = {
        0x8671f071, 0xcd03c9e4, 0x1fcda5d2, 0x5dab2246, 0xd3851b95, 0x587042af,
        0x01bacb9e, 0x8eb60ebe, 0x83d050d2, 0x03f97d6e, 0x54638741, 0x18f02065};
    return limbs[i];
}

CUZK_FN Fp beta() {
    Fp value;
#pragma unroll
    for (int i = 0; i < Fp::N; i++) value.limb[i] = beta_limb(i);
    return value;
}

// Limb i of lambda: 128 bits.
CUZK_FN constexpr uint32_t lambda_limb(int i) {
    constexpr uint32_t limbs[4] = {0xffffffff, 0x00000000, 0x0001a402, 0xac45a401};
    return limbs[i];
}

// k = remainder + quotient lambda, for k < r: both below 2^128, since (r - 1) / lambda < X^2 + 1.
//
// Long division, a bit at a time: the quotient's bits move into the limbs that the dividend's leave.
// Some two thousand instructions, little beside the doublings that it saves.
__device__ __forceinline__ void split_by_lambda(const Fr &k, u32 (&remainder)[4], u32 (&quotient)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) quotient[i] = k.limb[i], remainder[i] = k.limb[4 + i];
#pragma unroll 1
    for (int bit = 0; bit < 128; bit++) {
        const bool over = remainder[3] >> 31 != 0;
#pragma unroll
        for (int i = 3; i > 0; i--) remainder[i] = __funnelshift_l(remainder[i - 1], remainder[i], 1);
        remainder[0] = __funnelshift_l(quotient[3], remainder[0], 1);
#pragma unroll
        for (int i = 3; i > 0; i--) quotient[i] = __funnelshift_l(quotient[i - 1], quotient[i], 1);
        quotient[0] <<= 1;
        u32 less[4];
        Carry borrow;
        less[0] = sub_cc(remainder[0], lambda_limb(0), borrow);
        less[1] = subc_cc(remainder[1], lambda_limb(1), borrow);
        less[2] = subc_cc(remainder[2], lambda_limb(2), borrow);
        less[3] = subc_cc(remainder[3], lambda_limb(3), borrow);
        const bool fits = subc(0, 0, borrow) == 0;
        if (over || fits) {
#pragma unroll
            for (int i = 0; i < 4; i++) remainder[i] = less[i];
            quotient[0] |= 1;
        }
    }
}

// X^2 times the point: (lambda + 1) times.
__device__ __forceinline__ Jacobian<Fp> times_parameter_squared(const Jacobian<Fp> &point) {
    Jacobian<Fp> sum = {product_call(point.x, beta()), point.y, point.z};
    sum.add(point);
    return sum;
}

// |X| times the point: 63 doublings and 5 additions.
__device__ __forceinline__ Jacobian<Fp> times_parameter(const Jacobian<Fp> &point) {
    Jacobian<Fp> sum = point;
#pragma unroll 1
    for (int bit = 62; bit >= 0; bit--) {
        sum.double_in_place();
        if ((CURVE_PARAMETER >> bit & 1) != 0) sum.add(point);
    }
    return sum;
}

}  // namespace cuzk
