// Discrete Fourier transforms of 2, 4 or 8 elements in a thread's registers.
//
// A thread always holds eight elements: one transform of 8, two of 4 or four of 2 over the low
// bits of the index, chosen by `levels` (3, 2, 1; 0 does nothing). It is the same for the
// whole grid, so the branches on it cost nothing, and one body of code serves all three.
//
// A transform of 8 by halves takes five products: by ω, ω², ω³ and twice ω² for ω = ω_8. With
// c = (ω - ω³)/2 and s = (ω + ω³)/2 it takes four (Winograd): ω d_1 + ω³ d_3 is c (d_1 - d_3) + s (d_1 + d_3),
// and the other pair that is needed, ω³ d_1 + ω d_3, differs in the sign of the first product.

#pragma once

#include "ntt/lazy.cuh"

namespace cuzk {
namespace ntt {

// ω_8² = ω_4, c and s for the ω_8 of the transform's direction.
struct EighthRoots {
    Factor fourth;
    Factor c;
    Factor s;
};

// The three lowest bits of i in reverse.
CUZK_FN constexpr u32 reverse3(u32 i) { return (i & 1) << 2 | (i & 2) | (i >> 2 & 1); }

CUZK_FN Sum multiply(const Sum &x, const Factor &w, const Multiples &multiples) {
    return multiply(x.settled(multiples), w);
}

// y_k = Σ_j x_j ω^(jk): x in natural order, y in bit-reversed order. For x below 3 r no sum is
// above 24 r.
CUZK_FN void dft_natural_to_reversed(Sum (&x)[8], u32 levels, const EighthRoots &roots,
                                     const Multiples &multiples) {
    if (levels >= 3) {
#pragma unroll
        for (int j = 0; j < 4; j++) Sum::sum_and_difference(x[j], x[j + 4]);
        // The odd outputs, from the differences d_j = x[4 + j].
        Sum::sum_and_difference(x[5], x[7]);
        x[5] = multiply(x[5], roots.s, multiples);
        x[7] = multiply(x[7], roots.c, multiples);
        x[6] = multiply(x[6], roots.fourth, multiples);
        Sum::sum_and_difference(x[4], x[7]);
        Sum::sum_and_difference(x[6], x[5]);
        Sum::sum_and_difference(x[4], x[6]);  // y_1, y_7
        Sum::sum_and_difference(x[7], x[5]);  // y_5, y_3
        const Sum y7 = x[6];
        x[6] = x[5];
        x[5] = x[7];
        x[7] = y7;
    }
    if (levels >= 2) {
        Sum::sum_and_difference(x[0], x[2]);
        Sum::sum_and_difference(x[1], x[3]);
        x[3] = multiply(x[3], roots.fourth, multiples);
    }
    if (levels == 2) {
        Sum::sum_and_difference(x[4], x[6]);
        Sum::sum_and_difference(x[5], x[7]);
        x[7] = multiply(x[7], roots.fourth, multiples);
    }
    if (levels >= 1) {
        Sum::sum_and_difference(x[0], x[1]);
        Sum::sum_and_difference(x[2], x[3]);
    }
    if (levels == 1 || levels == 2) {
        Sum::sum_and_difference(x[4], x[5]);
        Sum::sum_and_difference(x[6], x[7]);
    }
}

// The same sum with x in bit-reversed order and y in natural order: the transpose of the above.
CUZK_FN void dft_reversed_to_natural(Sum (&x)[8], u32 levels, const EighthRoots &roots,
                                     const Multiples &multiples) {
    if (levels >= 1) {
        Sum::sum_and_difference(x[0], x[1]);
        Sum::sum_and_difference(x[2], x[3]);
    }
    if (levels == 1 || levels == 2) {
        Sum::sum_and_difference(x[4], x[5]);
        Sum::sum_and_difference(x[6], x[7]);
    }
    if (levels >= 2) {
        x[3] = multiply(x[3], roots.fourth, multiples);
        Sum::sum_and_difference(x[0], x[2]);
        Sum::sum_and_difference(x[1], x[3]);
    }
    if (levels == 2) {
        x[7] = multiply(x[7], roots.fourth, multiples);
        Sum::sum_and_difference(x[4], x[6]);
        Sum::sum_and_difference(x[5], x[7]);
    }
    if (levels >= 3) {
        // x[4], x[5], x[6], x[7] have the indices 1, 5, 3, 7.
        Sum::sum_and_difference(x[4], x[7]);
        Sum::sum_and_difference(x[5], x[6]);
        Sum::sum_and_difference(x[4], x[5]);
        Sum::sum_and_difference(x[7], x[6]);
        x[5] = multiply(x[5], roots.c, multiples);
        x[6] = multiply(x[6], roots.s, multiples);
        x[7] = multiply(x[7], roots.fourth, multiples);
        Sum::sum_and_difference(x[6], x[5]);
        const Sum odd3 = x[5];
        x[5] = x[6];
        x[6] = x[7];
        x[7] = odd3;
#pragma unroll
        for (int j = 0; j < 4; j++) Sum::sum_and_difference(x[j], x[j + 4]);
    }
}

}  // namespace ntt
}  // namespace cuzk
