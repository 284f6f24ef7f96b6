// Field operations as calls. A loop with many products can be faster with them than with 120 KB of
// inlined code (a fifth, transforms of points on an H200); where they are rare, they would be most of it.
// Operands and results stay in registers.

#pragma once

#include "common/kernel.cuh"

namespace cuzk {

template <class F>
CUZK_NOINLINE __device__ F product_call(F x, F y) {
    return x * y;
}

template <class F>
CUZK_NOINLINE __device__ F square_call(F x) {
    return x.squared();
}

// 1/x; 0 for 0.
template <class F>
CUZK_NOINLINE __device__ F inverse_call(F x) {
    return inverse(x);
}

}  // namespace cuzk
