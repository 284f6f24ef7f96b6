// How many operations a second the arithmetic does, with its operands in registers.
//
// Each thread works on values of its own: a chain in which every operation needs the result of the
// one before. Only the first values are read and the last ones written. Threads per multiprocessor
// are those that the operation's registers allow.

#include "common/kernel.cuh"
#include "curve/xyzz.cuh"

namespace cuzk {

// values[i] and others[i] are thread i's; values[i] is replaced by the chain's end.
template <class Value, class Other>
struct RateParams {
    Value *values;
    const Other *others;
    u32 len;
    u32 iterations;
};

template <class Value, class Other, class Step>
__device__ __forceinline__ void chain(const RateParams<Value, Other> &p, Step step) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= p.len) return;
    Value value = p.values[i];
    const Other other = p.others[i];
#pragma unroll 1
    for (u32 k = 0; k < p.iterations; k++) step(value, other);
    p.values[i] = value;
}

#define CUZK_RATE(name, threads, min_blocks, Value, Other, statement)                              \
    using name##_params = RateParams<Value, Other>;                                                \
    CUZK_KERNEL(name, threads, min_blocks, name##_params) {                                        \
        chain(p, [](Value &x, const Other &y) { statement; });                                     \
    }

CUZK_RATE(rate_fp_multiply, 256, 4, Fp, Fp, x *= y)
CUZK_RATE(rate_fp_square, 256, 4, Fp, Fp, (void)y; x = x.squared())
CUZK_RATE(rate_fp_inverse, 256, 2, Fp, Fp, x = inverse(x) + y)
CUZK_RATE(rate_fr_multiply, 256, 5, Fr, Fr, x *= y)
CUZK_RATE(rate_fr_square, 256, 5, Fr, Fr, (void)y; x = x.squared())
CUZK_RATE(rate_fr_inverse, 256, 3, Fr, Fr, x = inverse(x) + y)
CUZK_RATE(rate_fp2_multiply, 128, 4, Fp2, Fp2, x *= y)
CUZK_RATE(rate_fp2_square, 128, 4, Fp2, Fp2, (void)y; x = x.squared())
CUZK_RATE(rate_g1_add_affine, 128, 2, G1Xyzz, G1Affine, x.add(y))
CUZK_RATE(rate_g1_add, 128, 2, G1Xyzz, G1Xyzz, x.add(y))
CUZK_RATE(rate_g2_add_affine, 128, 2, G2Xyzz, G2Affine, x.add(y))

struct Accumulators {
    u32 limb[16];
};

// The multiply pipe alone: 16 rows of 8 multiply-adds of 32 by 32 bits with carry, which the
// assembler makes IMAD.WIDE; each row's factor comes from the one before.
__device__ __forceinline__ void multiply_rows(Accumulators &x, const Accumulators &y) {
#pragma unroll
    for (int row = 0; row < 16; row++) {
        const u32 factor = x.limb[1];
        Carry carry;
        mad_cc(x.limb[0], x.limb[1], y.limb[0], factor, carry);
#pragma unroll
        for (int i = 2; i < 16; i += 2) madc_cc(x.limb[i], x.limb[i + 1], y.limb[i], factor, carry);
    }
}

CUZK_RATE(rate_multiply_add, 256, 4, Accumulators, Accumulators, multiply_rows(x, y))

}  // namespace cuzk
