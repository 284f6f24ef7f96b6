// Discrete Fourier transforms of 2, 4 or 8 elements in a thread's registers.
//
// A thread always holds eight elements: one transform of 8, two of 4 or four of 2 over the low
// bits of the index, chosen by `levels` (3, 2, 1; 0 does nothing). It is the same for the
// whole grid, so the branches on it cost nothing, and one body of code serves all three.

#pragma once

#include "ntt/lazy.cuh"

namespace cuzk {
namespace ntt {

// ω_8, ω_8² and ω_8³ for the ω of the transform's direction.
struct EighthRoots {
    Factor power[3];
};

// The three lowest bits of i in reverse.
CUZK_FN constexpr u32 reverse3(u32 i) { return (i & 1) << 2 | (i & 2) | (i >> 2 & 1); }

// y_k = Σ_j x_j ω^(jk): x in natural order, y in bit-reversed order. Five products for a
// transform of 8: the twiddle factors of the first level are 1, ω_8, ω_8², ω_8³, of the second 1, ω_4.
CUZK_FN void dft_natural_to_reversed(Lazy (&x)[8], u32 levels, const EighthRoots &roots) {
    if (levels >= 3) {
#pragma unroll
        for (int j = 0; j < 4; j++) Lazy::sum_and_difference(x[j], x[j + 4]);
#pragma unroll
        for (int j = 1; j < 4; j++) x[j + 4] = x[j + 4] * roots.power[j - 1];
    }
    if (levels >= 2) {
#pragma unroll
        for (int half = 0; half < 8; half += 4) {
            Lazy::sum_and_difference(x[half], x[half + 2]);
            Lazy::sum_and_difference(x[half + 1], x[half + 3]);
            x[half + 3] = x[half + 3] * roots.power[1];
        }
    }
    if (levels >= 1) {
#pragma unroll
        for (int j = 0; j < 8; j += 2) Lazy::sum_and_difference(x[j], x[j + 1]);
    }
}

// The same sum with x in bit-reversed order and y in natural order: the transpose of the above.
CUZK_FN void dft_reversed_to_natural(Lazy (&x)[8], u32 levels, const EighthRoots &roots) {
    if (levels >= 1) {
#pragma unroll
        for (int j = 0; j < 8; j += 2) Lazy::sum_and_difference(x[j], x[j + 1]);
    }
    if (levels >= 2) {
#pragma unroll
        for (int half = 0; half < 8; half += 4) {
            x[half + 3] = x[half + 3] * roots.power[1];
            Lazy::sum_and_difference(x[half], x[half + 2]);
            Lazy::sum_and_difference(x[half + 1], x[half + 3]);
        }
    }
    if (levels >= 3) {
#pragma unroll
        for (int j = 1; j < 4; j++) x[j + 4] = x[j + 4] * roots.power[j - 1];
#pragma unroll
        for (int j = 0; j < 4; j++) Lazy::sum_and_difference(x[j], x[j + 4]);
    }
}

}  // namespace ntt
}  // namespace cuzk
