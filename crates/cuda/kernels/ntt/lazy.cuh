// Elements of Fr as the transforms hold them within a pass and between two, and multiplication by
// factors that are known beforehand.
//
// `Lazy` is Montgomery form with R = 2^256, as Fr, but any of the two or three representatives
// below 2^256. `Sum` is a sum of a few of them: nine limbs, signed. Additions and subtractions do
// not reduce at all; `settled` brings a sum back to eight limbs, once for several of them.
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

// A representative below 2^256.
struct Lazy {
    u32 limb[8];

    CUZK_FN static Lazy of(const Fr &x) {
        Lazy value;
#pragma unroll
        for (int i = 0; i < 8; i++) value.limb[i] = x.limb[i];
        return value;
    }

    // The same element below r: 2^256 is less than 3 r.
    CUZK_FN Fr reduced() const {
        Fr value;
#pragma unroll
        for (int i = 0; i < 8; i++) value.limb[i] = limb[i];
        return value.below_p().below_p();
    }
};

// Multiples of r for `Sum::settled`.
struct Multiples {
    // Entry 64 + k holds -floor(k 2^254 / r) r mod 2^256, for -64 <= k < 64.
    const Fr *entries;
};

// A sum of representatives, in two's complement: limb 8 is the highest.
struct Sum {
    u32 limb[9];

    CUZK_FN static Sum of(const Lazy &x) {
        Sum sum;
#pragma unroll
        for (int i = 0; i < 8; i++) sum.limb[i] = x.limb[i];
        sum.limb[8] = 0;
        return sum;
    }

    // (x, y) becomes (x + y, x - y).
    CUZK_FN static void sum_and_difference(Sum &x, Sum &y) {
        Sum sum;
        Carry carry;
        sum.limb[0] = add_cc(x.limb[0], y.limb[0], carry);
#pragma unroll
        for (int i = 1; i < 8; i++) sum.limb[i] = addc_cc(x.limb[i], y.limb[i], carry);
        sum.limb[8] = addc(x.limb[8], y.limb[8], carry);
        Carry borrow;
        y.limb[0] = sub_cc(x.limb[0], y.limb[0], borrow);
#pragma unroll
        for (int i = 1; i < 8; i++) y.limb[i] = subc_cc(x.limb[i], y.limb[i], borrow);
        y.limb[8] = subc(x.limb[8], y.limb[8], borrow);
        x = sum;
    }

    // A representative below 1.56 r, for sums of less than 35 r in magnitude. With
    // k = floor(sum / 2^254), taking off floor(k 2^254 / r) r leaves at least nothing and less than
    // 2^254 + r; k is in the two highest bits of limb 7 and those above.
    CUZK_FN Lazy settled(const Multiples &multiples) const {
        const i32 k = static_cast<i32>(limb[8] << 2 | limb[7] >> 30);
        const uint4 *halves = reinterpret_cast<const uint4 *>(multiples.entries + 64 + k);
        const uint4 low = __ldg(halves), high = __ldg(halves + 1);
        Lazy rest;
        Carry carry;
        rest.limb[0] = add_cc(limb[0], low.x, carry);
        rest.limb[1] = addc_cc(limb[1], low.y, carry);
        rest.limb[2] = addc_cc(limb[2], low.z, carry);
        rest.limb[3] = addc_cc(limb[3], low.w, carry);
        rest.limb[4] = addc_cc(limb[4], high.x, carry);
        rest.limb[5] = addc_cc(limb[5], high.y, carry);
        rest.limb[6] = addc_cc(limb[6], high.z, carry);
        rest.limb[7] = addc(limb[7], high.w, carry);
        return rest;
    }
};

// limb -= r where `chosen` is not zero; the borrow out is dropped.
CUZK_FN void subtract_modulus_if(u32 (&limb)[8], u32 chosen) {
#if defined(__CUDA_ARCH__)
    asm volatile(
        "{\n\t.reg .pred chosen;\n\t"
        "setp.ne.u32 chosen, %8, 0;\n\t"
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
    if (chosen == 0) return;
    Carry borrow;
    limb[0] = sub_cc(limb[0], FrModulus::p(0), borrow);
    for (int i = 1; i < 8; i++) limb[i] = subc_cc(limb[i], FrModulus::p(i), borrow);
#endif
}

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
        add_even(even, odd, factor, by, 0);
    }

    // Adds `above` to column 8 besides.
    CUZK_FN static void add_even(u32 (&even)[8], u32 (&odd)[8], const u32 (&factor)[8], u32 by,
                                 u32 above) {
        Carry carry;
        mad_cc(even[0], even[1], factor[0], by, carry);
#pragma unroll
        for (int k = 2; k < 8; k += 2) madc_cc(even[k], even[k + 1], factor[k], by, carry);
        odd[7] = addc(odd[7], above, carry);
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
        mulc(odd[6], odd[7], factor[7], by, carry);
        add_even(even, odd, factor, by, top);
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

// W x, below (2^128 r + 2^128 r + 2^128 r) / 2^128 = 3 r: one bit may stand in limb 8.
CUZK_FN Sum multiply(const Lazy &x, const Factor &w) {
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
    Sum result;
    Carry carry;
    result.limb[0] = add_cc(a[0], b[1], carry);
#pragma unroll
    for (int k = 1; k < 7; k++) result.limb[k] = addc_cc(a[k], b[k + 1], carry);
    result.limb[7] = addc_cc(a[7], 0, carry);
    result.limb[8] = addc(product.top, 0, carry);
    return result;
}

// A sum of at least 0 and less than 3 r as eight limbs: where limb 8 is not zero, it is more than r.
CUZK_FN Lazy below_2_256(const Sum &sum) {
    Lazy result;
#pragma unroll
    for (int i = 0; i < 8; i++) result.limb[i] = sum.limb[i];
    subtract_modulus_if(result.limb, sum.limb[8]);
    return result;
}

CUZK_FN Lazy operator*(const Lazy &x, const Factor &w) { return below_2_256(multiply(x, w)); }

}  // namespace ntt
}  // namespace cuzk
