// The base field of BLS12-381: 381 bits, R = 2^384.

#pragma once

#include "mont.cuh"

namespace cuzk {

#if defined(__CUDACC__)
// In constant memory, so that the assembler does not know the values and leaves a product's two
// halves one IMAD.WIDE. It splits them when it sees that Fr's inverse is -1 and folds the negation
// into the low half: 56 instructions more for a product.
static __constant__ uint32_t fp_modulus[12] = {
    0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe,
    0xf6b0f624, 0x6730d2a0, 0xf38512bf, 0x64774b84,
    0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea};
static __constant__ uint32_t fp_doubled_modulus[12] = {
    0xffff5556, 0x73fdffff, 0x62a7ffff, 0x3d57fffd,
    0xed61ec48, 0xce61a541, 0xe70a257e, 0xc8ee9709,
    0x869759ae, 0x96374f6c, 0x72ffcd34, 0x340223d4};
static __constant__ uint32_t fp_negative_inverse = 0xfffcfffd;
#endif

struct FpModulus {
    static constexpr int N = 12;
    // -1/p mod 2^32.
    CUZK_FN static uint32_t negative_inverse() {
#if defined(__CUDA_ARCH__)
        return fp_negative_inverse;
#else
        return 0xfffcfffd;
#endif
    }

    // Limb i of the modulus, known at compile time. A function, as those below: with i known as
    // well none of them leaves an array in local memory.
    CUZK_FN static constexpr uint32_t p_limb(int i) {
        constexpr uint32_t limbs[N] = {
            0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe,
            0xf6b0f624, 0x6730d2a0, 0xf38512bf, 0x64774b84,
            0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea};
        return limbs[i];
    }

    // The same to compute with, from constant memory on the device.
    CUZK_FN static uint32_t p(int i) {
#if defined(__CUDA_ARCH__)
        return fp_modulus[i];
#else
        return p_limb(i);
#endif
    }

    // Limb i of 2 p.
    CUZK_FN static uint32_t doubled_p(int i) {
#if defined(__CUDA_ARCH__)
        return fp_doubled_modulus[i];
#else
        constexpr uint32_t limbs[N] = {
            0xffff5556, 0x73fdffff, 0x62a7ffff, 0x3d57fffd,
            0xed61ec48, 0xce61a541, 0xe70a257e, 0xc8ee9709,
            0x869759ae, 0x96374f6c, 0x72ffcd34, 0x340223d4};
        return limbs[i];
#endif
    }

    // Limb i of R mod p, R = 2^384.
    CUZK_FN static constexpr uint32_t r(int i) {
        constexpr uint32_t limbs[N] = {
            0x0002fffd, 0x76090000, 0xc40c0002, 0xebf4000b,
            0x53c758ba, 0x5f489857, 0x70525745, 0x77ce5853,
            0xa256ec6d, 0x5c071a97, 0xfa80e493, 0x15f65ec3};
        return limbs[i];
    }

    // Limb i of R^2 mod p.
    CUZK_FN static constexpr uint32_t r_squared(int i) {
        constexpr uint32_t limbs[N] = {
            0x1c341746, 0xf4df1f34, 0x09d104f1, 0x0a76e6a6,
            0x4c95b6d5, 0x8de5476c, 0x939d83c0, 0x67eb88a9,
            0xb519952d, 0x9a793e85, 0x92cae3aa, 0x11988fe5};
        return limbs[i];
    }
};

using Fp = Mont<FpModulus>;

static_assert(sizeof(Fp) == 48 && alignof(Fp) == 16, "as blst lays it out, in 16-byte pieces");

}  // namespace cuzk
