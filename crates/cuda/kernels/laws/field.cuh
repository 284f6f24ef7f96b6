// Every operation of a field, one result after the other, for a comparison with another library.

#pragma once

#include "common/kernel.cuh"
#include "field/fp2.cuh"

namespace cuzk {

// x and y: len values each, reduced, Montgomery form. out[operation * len + i] is the result for
// element i; flags[i] has bit 0 set if x = 0 and bit 1 if x = y.
template <class F>
struct FieldLawsParams {
    const F *x;
    const F *y;
    F *out;
    u32 *flags;
    u32 len;
};

// The operations of every field; prime fields have the others too.
enum FieldOperation : u32 {
    ADD,
    SUBTRACT,
    MULTIPLY,
    SQUARE,
    NEGATE,
    DOUBLE,
    INVERT,
    TO_CANONICAL,
    TO_MONTGOMERY,   // of the same limbs, as a canonical number
    MULTIPLY_APART,  // the product, and then its reduction
};

// One thread per element; a block of 256 threads.
template <class F>
__device__ __forceinline__ void field_laws(const FieldLawsParams<F> &p) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= p.len) return;
    const F x = p.x[i], y = p.y[i];
    F *out = p.out + i;
    out[ADD * p.len] = x + y;
    out[SUBTRACT * p.len] = x - y;
    out[MULTIPLY * p.len] = x * y;
    out[SQUARE * p.len] = x.squared();
    out[NEGATE * p.len] = -x;
    out[DOUBLE * p.len] = x.doubled();
    out[INVERT * p.len] = inverse(x);
    if constexpr (sizeof(F) != sizeof(Fp2)) {
        out[TO_CANONICAL * p.len] = x.to_canonical();
        out[TO_MONTGOMERY * p.len] = x.to_montgomery();
        out[MULTIPLY_APART * p.len] = F::reduce(F::multiply_wide(x, y));
    }
    p.flags[i] = (x.is_zero() ? 1 : 0) | (x == y ? 2 : 0);
}

}  // namespace cuzk
