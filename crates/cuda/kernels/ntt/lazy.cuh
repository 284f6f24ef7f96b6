// Elements of Fr as the transforms hold them between two passes, and multiplication by factors
// that are known beforehand.
//
// Lazy is Montgomery form with R = 2^256, as Fr, but below 2 r instead of r: 2 r < 2^256, so
// it still takes eight limbs, and sums, differences and products each save a correction.
//
// A factor W that is used again and again is stored twice, as W 2^128 and W 2^256 (both mod r).
// With x = x_low + 2^128 x_high,
//
//     x_low (W 2^128) + x_high (W 2^256)  =  2^128 W x   (mod r)
//
// has only 128 bits to reduce, where the product of two arbitrary elements has 256: four
// Montgomery steps instead of eight. 64 + 28 products of limbs instead of 64 + 64.

#pragma once

#include "common/kernel.cuh"
#include "field/fr.cuh"

namespace cuzk {
namespace ntt {

// W prepared for `Lazy * Factor`.
struct alignas(16) Factor {
    u32 low[8];   // W 2^128 mod r
    u32 high[8];  // W 2^256 mod r: the Montgomery form of W

    CUZK_FN static Factor of(const Fr &w) {
        Fr power = Fr::zero();
        power.limb[4] = 1;  // 2^128, and the product divides by 2^256
        const Fr low = w * power;
        Factor factor;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            factor.low[i] = low.limb[i];
            factor.high[i] = w.limb[i];
        }
        return factor;
    }
};

// Limb i of 2 r.
CUZK_FN constexpr u32 twice_modulus(int i) {
    constexpr u32 limbs[8] = {0x00000002, 0xfffffffe, 0xfffcb7fd, 0xa77b4805,
                              0x1343b00a, 0x6673b010, 0x533afa90, 0xe7db4ea6};
    return limbs[i];
}

// limb += 2 r where `mask` is not zero; the carry out is dropped.
CUZK_FN void add_twice_modulus_if(u32 (&limb)[8], u32 mask) {
#if defined(__CUDA_ARCH__)
    asm volatile(
        "{\n\t.reg .pred chosen;\n\t"
        "setp.ne.u32 chosen, %8, 0;\n\t"
        "@chosen add.cc.u32 %0, %0, 0x00000002;\n\t"
        "@chosen addc.cc.u32 %1, %1, 0xfffffffe;\n\t"
        "@chosen addc.cc.u32 %2, %2, 0xfffcb7fd;\n\t"
        "@chosen addc.cc.u32 %3, %3, 0xa77b4805;\n\t"
        "@chosen addc.cc.u32 %4, %4, 0x1343b00a;\n\t"
        "@chosen addc.cc.u32 %5, %5, 0x6673b010;\n\t"
        "@chosen addc.cc.u32 %6, %6, 0x533afa90;\n\t"
        "@chosen addc.u32 %7, %7, 0xe7db4ea6;\n\t}"
        : "+r"(limb[0]), "+r"(limb[1]), "+r"(limb[2]), "+r"(limb[3]), "+r"(limb[4]), "+r"(limb[5]),
          "+r"(limb[6]), "+r"(limb[7])
        : "r"(mask));
#else
    if (mask == 0) return;
    Carry carry;
    limb[0] = add_cc(limb[0], twice_modulus(0), carry);
    for (int i = 1; i < 8; i++) limb[i] = addc_cc(limb[i], twice_modulus(i), carry);
#endif
}

// limb -= r where `chosen` is negative as a signed number; the borrow out is dropped.
CUZK_FN void subtract_modulus_if_negative(u32 (&limb)[8], u32 chosen) {
#if defined(__CUDA_ARCH__)
    asm volatile(
        "{\n\t.reg .pred chosen;\n\t"
        "setp.lt.s32 chosen, %8, 0;\n\t"
        "@chosen sub.cc.u32 %0, %0, 0x00000001;\n\t"
        "@chosen subc.cc.u32 %1, %1, 0xffffffff;\n\t"
        "@chosen subc.cc.u32 %2, %2, 0xfffe5bfe;\n\t"
        "@chosen subc.cc.u32 %3, %3, 0x53bda402;\n\t"
        "@chosen subc.cc.u32 %4, %4, 0x09a1d805;\n\t"
        "@chosen subc.cc.u32 %5, %5, 0x3339d808;\n\t"
        "@chosen subc.cc.u32 %6, %6, 0x299d7d48;\n\t"
        "@chosen subc.u32 %7, %7, 0x73eda753;\n\t}"
        : "+r"(limb[0]), "+r"(limb[1]), "+r"(limb[2]), "+r"(limb[3]), "+r"(limb[4]), "+r"(limb[5]),
          "+r"(limb[6]), "+r"(limb[7])
        : "r"(chosen));
#else
    if (static_cast<i32>(chosen) >= 0) return;
    Carry borrow;
    limb[0] = sub_cc(limb[0], FrModulus::p(0), borrow);
    for (int i = 1; i < 8; i++) limb[i] = subc_cc(limb[i], FrModulus::p(i), borrow);
#endif
}

struct Lazy {
    u32 limb[8];

    // (x, y) becomes (x + y, x - y). Both results are computed less 2 r or not, and 2 r is added where
    // the last borrow says that the result is negative.
    CUZK_FN static void sum_and_difference(Lazy &x, Lazy &y) {
        u32 sum[8];
        Carry carry;
        sum[0] = add_cc(x.limb[0], y.limb[0], carry);
#pragma unroll
        for (int i = 1; i < 8; i++) sum[i] = addc_cc(x.limb[i], y.limb[i], carry);
        const u32 ninth = addc(0, 0, carry);

        Carry sum_borrow;
        sum[0] = sub_cc(sum[0], twice_modulus(0), sum_borrow);
#pragma unroll
        for (int i = 1; i < 8; i++) sum[i] = subc_cc(sum[i], twice_modulus(i), sum_borrow);
        const u32 sum_mask = subc(ninth, 0, sum_borrow);

        Carry borrow;
        y.limb[0] = sub_cc(x.limb[0], y.limb[0], borrow);
#pragma unroll
        for (int i = 1; i < 8; i++) y.limb[i] = subc_cc(x.limb[i], y.limb[i], borrow);
        const u32 mask = subc(0, 0, borrow);

        add_twice_modulus_if(sum, sum_mask);
        add_twice_modulus_if(y.limb, mask);
#pragma unroll
        for (int i = 0; i < 8; i++) x.limb[i] = sum[i];
    }

    // The same element below r.
    CUZK_FN Fr reduced() const {
        Fr value;
#pragma unroll
        for (int i = 0; i < 8; i++) value.limb[i] = limb[i];
        return value.below_p();
    }
};

// Products of a lazy element with a factor. Columns are kept in two accumulators as in
// field/mont.cuh, where the names even and odd are explained.
struct Product {
    u32 even[8], odd[8];
    // Column 9 after a step, column 8 after moving down.
    u32 top;

    // Adds factor times `by`. The sum of both factors' rows and what was left before is below
    // 2^33 r + 3 r < 2^288: columns 0 to 8, so the odd chain has no carry out.
    CUZK_FN static void add_row(u32 (&even)[8], u32 (&odd)[8], const u32 (&factor)[8], u32 by) {
        Carry carry;
        mad_cc(odd[0], odd[1], factor[1], by, carry);
#pragma unroll
        for (int k = 2; k < 8; k += 2) madc_cc(odd[k], odd[k + 1], factor[k + 1], by, carry);
        add_even(even, odd, factor, by);
    }

    CUZK_FN static void add_even(u32 (&even)[8], u32 (&odd)[8], const u32 (&factor)[8], u32 by) {
        Carry carry;
        mad_cc(even[0], even[1], factor[0], by, carry);
#pragma unroll
        for (int k = 2; k < 8; k += 2) madc_cc(even[k], even[k + 1], factor[k], by, carry);
        odd[7] = addc(odd[7], 0, carry);
    }

    // Moves down by a column, the accumulators having changed names, and adds factor times `by`.
    CUZK_FN void next_row(u32 (&even)[8], u32 (&odd)[8], const u32 (&factor)[8], u32 by) {
        Carry carry;
        even[0] = add_cc(even[0], odd[1], carry);
#pragma unroll
        for (int k = 0; k < 6; k += 2) {
            odd[k] = odd[k + 2];
            odd[k + 1] = odd[k + 3];
            madc_cc(odd[k], odd[k + 1], factor[k + 1], by, carry);
        }
        odd[6] = 0;
        odd[7] = top;
        madc_cc(odd[6], odd[7], factor[7], by, carry);
        add_even(even, odd, factor, by);
    }

    // Adds the multiple of r that makes column 0 zero. r = 1 mod 2^32, so the multiple is the
    // negative of that column and its lowest product is itself.
    CUZK_FN void cancel(u32 (&even)[8], u32 (&odd)[8]) {
        const u32 multiple = even[0] * FrModulus::negative_inverse();
        Carry carry;
        mad_cc(odd[0], odd[1], FrModulus::p(1), multiple, carry);
#pragma unroll
        for (int k = 2; k < 8; k += 2) madc_cc(odd[k], odd[k + 1], FrModulus::p(k + 1), multiple, carry);
        top = addc(0, 0, carry);
        Carry low;
        even[0] = add_cc(even[0], multiple, low);
        even[1] = addc_cc(even[1], 0, low);
#pragma unroll
        for (int k = 2; k < 8; k += 2) madc_cc(even[k], even[k + 1], FrModulus::p(k), multiple, low);
        odd[7] = addc_cc(odd[7], 0, low);
        top = addc(top, 0, low);
    }
};

// W x, for any 256-bit x: what is left is below (2^128 r + 2^128 r + 2^128 r) / 2^128 = 3 r, and
// r is taken off once if it is 2^255 (more than r, less than 2 r) or more.
CUZK_FN Lazy operator*(const Lazy &x, const Factor &w) {
    Product product;
    u32(&a)[8] = product.even;
    u32(&b)[8] = product.odd;
#pragma unroll
    for (int k = 0; k < 8; k += 2) {
        mul_wide(a[k], a[k + 1], w.low[k], x.limb[0]);
        mul_wide(b[k], b[k + 1], w.low[k + 1], x.limb[0]);
    }
    Product::add_row(a, b, w.high, x.limb[4]);
    product.cancel(a, b);
    product.next_row(b, a, w.low, x.limb[1]);
    Product::add_row(b, a, w.high, x.limb[5]);
    product.cancel(b, a);
    product.next_row(a, b, w.low, x.limb[2]);
    Product::add_row(a, b, w.high, x.limb[6]);
    product.cancel(a, b);
    product.next_row(b, a, w.low, x.limb[3]);
    Product::add_row(b, a, w.high, x.limb[7]);
    product.cancel(b, a);

    // b is even now; its column 0 is zero.
    Lazy result;
    Carry carry;
    result.limb[0] = add_cc(a[0], b[1], carry);
#pragma unroll
    for (int k = 1; k < 7; k++) result.limb[k] = addc_cc(a[k], b[k + 1], carry);
    result.limb[7] = addc_cc(a[7], 0, carry);
    const u32 top = addc(product.top, 0, carry);
    subtract_modulus_if_negative(result.limb, result.limb[7] | top << 31);
    return result;
}

}  // namespace ntt
}  // namespace cuzk
