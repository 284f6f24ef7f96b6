// The scalar field of BLS12-381: 255 bits, R = 2^256.

#pragma once

#include "mont.cuh"

namespace cuzk {

#if defined(__CUDACC__)
// In constant memory, so that the assembler does not know the values and leaves a product's two
// halves one IMAD.WIDE. It splits them when it sees that Fr's inverse is -1 and folds the negation
// into the low half: 56 instructions more for a product.
static __constant__ uint32_t fr_modulus[8] = {
    0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402,
    0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753};
static __constant__ uint32_t fr_negative_inverse = 0xffffffff;
#endif

struct FrModulus {
    static constexpr int N = 8;
    // -1/p mod 2^32.
    CUZK_FN static uint32_t negative_inverse() {
#if defined(__CUDA_ARCH__)
        return fr_negative_inverse;
#else
        return 0xffffffff;
#endif
    }

    // Limb i of the modulus, known at compile time. A function, as those below: with i known as
    // well none of them leaves an array in local memory.
    CUZK_FN static constexpr uint32_t p_limb(int i) {
        constexpr uint32_t limbs[N] = {
            0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402,
            0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753};
        return limbs[i];
    }

    // The same to compute with, from constant memory on the device.
    CUZK_FN static uint32_t p(int i) {
#if defined(__CUDA_ARCH__)
        return fr_modulus[i];
#else
        return p_limb(i);
#endif
    }

    // Limb i of R mod p, R = 2^256.
    CUZK_FN static constexpr uint32_t r(int i) {
        constexpr uint32_t limbs[N] = {
            0xfffffffe, 0x00000001, 0x00034802, 0x5884b7fa,
            0xecbc4ff5, 0x998c4fef, 0xacc5056f, 0x1824b159};
        return limbs[i];
    }

    // Limb i of R^2 mod p.
    CUZK_FN static constexpr uint32_t r_squared(int i) {
        constexpr uint32_t limbs[N] = {
            0xf3f29c6d, 0xc999e990, 0x87925c23, 0x2b6cedcb,
            0x7254398f, 0x05d31496, 0x9f59ff11, 0x0748d9d9};
        return limbs[i];
    }
};

using Fr = Mont<FrModulus>;

static_assert(sizeof(Fr) == 32 && alignof(Fr) == 16, "as blst lays it out, in 16-byte pieces");

}  // namespace cuzk
