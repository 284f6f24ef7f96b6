// Scalars as signed numbers of 254 bits, whose digits need no carry from one to the next.

#pragma once

#include "common/kernel.cuh"
#include "field/carry.cuh"

namespace cuzk {

// Limbs of a scalar with one half of every digit's range added.
constexpr int SHIFTED_LIMBS = 9;

// (r - 1) / 2.
__device__ __forceinline__ constexpr u32 half_order(int i) {
    constexpr u32 limbs[8] = {0x80000000, 0x7fffffff, 0x7fff2dff, 0xa9ded201,
                              0x04d0ec02, 0x199cec04, 0x94cebea4, 0x39f6d3a9};
    return limbs[i];
}

// r.
__device__ __forceinline__ constexpr u32 order(int i) {
    constexpr u32 limbs[8] = {0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402,
                              0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753};
    return limbs[i];
}

// If value > (r - 1) / 2: value <- r - value, true. So 254 bits are enough, and small negative
// numbers have small digits.
__device__ __forceinline__ bool take_smaller_sign(u32 (&value)[SHIFTED_LIMBS]) {
    Carry carry;
    sub_cc(half_order(0), value[0], carry);
#pragma unroll
    for (int i = 1; i < 8; i++) subc_cc(half_order(i), value[i], carry);
    if (subc(0, 0, carry) == 0) return false;
    Carry borrow;
    value[0] = sub_cc(order(0), value[0], borrow);
#pragma unroll
    for (int i = 1; i < 7; i++) value[i] = subc_cc(order(i), value[i], borrow);
    value[7] = subc(order(7), value[7], borrow);
    return true;
}

__device__ __forceinline__ void shift_right(u32 (&value)[SHIFTED_LIMBS], u32 bits) {
    while (bits >= 32) {
#pragma unroll
        for (int i = 0; i < SHIFTED_LIMBS - 1; i++) value[i] = value[i + 1];
        value[SHIFTED_LIMBS - 1] = 0;
        bits -= 32;
    }
#pragma unroll
    for (int i = 0; i < SHIFTED_LIMBS - 1; i++) {
        value[i] = __funnelshift_r(value[i], value[i + 1], bits);
    }
    value[SHIFTED_LIMBS - 1] >>= bits;
}

}  // namespace cuzk
