// 32-bit additions and multiplications that hand a carry on to the next one.
//
// On the device they are PTX instructions, which keep the carry in a flag of their own; `Carry`
// is then empty and only shows who follows whom. On the host the carry is in `Carry`. So the
// algorithms built on these functions are the same text on both, and the host can test them.
//
// A chain begins with a function whose name has no `c` after the operation (`add_cc`, `mad_cc`),
// goes on with those that have one (`addc_cc`, `madc_cc`) and ends with one without `_cc`.
// Nothing else that sets the flag may stand between the links of a chain.

#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define CUZK_FN __host__ __device__ __forceinline__
#elif defined(CUZK_EMULATION)
// Not always: G2's formulas inlined whole take minutes to compile, and the emulation is for tests.
#define CUZK_FN inline
#else
#define CUZK_FN inline __attribute__((always_inline))
#endif

namespace cuzk {

struct Carry {
#if !defined(__CUDA_ARCH__)
    // An addition's carry or a subtraction's borrow: 0 or 1.
    uint32_t bit = 0;
#endif
};

#if !defined(__CUDA_ARCH__)
namespace host {
inline uint32_t add(uint32_t x, uint32_t y, uint32_t carry_in, Carry &carry) {
    uint64_t sum = uint64_t(x) + y + carry_in;
    carry.bit = uint32_t(sum >> 32);
    return uint32_t(sum);
}

inline uint32_t sub(uint32_t x, uint32_t y, uint32_t borrow_in, Carry &carry) {
    uint64_t difference = uint64_t(x) - y - borrow_in;
    carry.bit = uint32_t(difference >> 63);
    return uint32_t(difference);
}
}  // namespace host
#endif

// x + y.
CUZK_FN uint32_t add_cc(uint32_t x, uint32_t y, Carry &carry) {
#if defined(__CUDA_ARCH__)
    uint32_t sum;
    asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(sum) : "r"(x), "r"(y));
    return sum;
#else
    return host::add(x, y, 0, carry);
#endif
}

// x + y + carry.
CUZK_FN uint32_t addc_cc(uint32_t x, uint32_t y, Carry &carry) {
#if defined(__CUDA_ARCH__)
    uint32_t sum;
    asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(sum) : "r"(x), "r"(y));
    return sum;
#else
    return host::add(x, y, carry.bit, carry);
#endif
}

// x + y + carry, the end of a chain.
CUZK_FN uint32_t addc(uint32_t x, uint32_t y, Carry &carry) {
#if defined(__CUDA_ARCH__)
    uint32_t sum;
    asm volatile("addc.u32 %0, %1, %2;" : "=r"(sum) : "r"(x), "r"(y));
    return sum;
#else
    return x + y + carry.bit;
#endif
}

// x - y.
CUZK_FN uint32_t sub_cc(uint32_t x, uint32_t y, Carry &carry) {
#if defined(__CUDA_ARCH__)
    uint32_t difference;
    asm volatile("sub.cc.u32 %0, %1, %2;" : "=r"(difference) : "r"(x), "r"(y));
    return difference;
#else
    return host::sub(x, y, 0, carry);
#endif
}

// x - y - borrow.
CUZK_FN uint32_t subc_cc(uint32_t x, uint32_t y, Carry &carry) {
#if defined(__CUDA_ARCH__)
    uint32_t difference;
    asm volatile("subc.cc.u32 %0, %1, %2;" : "=r"(difference) : "r"(x), "r"(y));
    return difference;
#else
    return host::sub(x, y, carry.bit, carry);
#endif
}

// x - y - borrow, the end of a chain: all ones for the borrow alone when x = y = 0.
CUZK_FN uint32_t subc(uint32_t x, uint32_t y, Carry &carry) {
#if defined(__CUDA_ARCH__)
    uint32_t difference;
    asm volatile("subc.u32 %0, %1, %2;" : "=r"(difference) : "r"(x), "r"(y));
    return difference;
#else
    return x - y - carry.bit;
#endif
}

// (low, high) += x * y. Both halves stand in one statement so that the assembler sees one
// IMAD.WIDE.
CUZK_FN void mad_cc(uint32_t &low, uint32_t &high, uint32_t x, uint32_t y, Carry &carry) {
#if defined(__CUDA_ARCH__)
    asm volatile("mad.lo.cc.u32 %0, %2, %3, %0;\n\tmadc.hi.cc.u32 %1, %2, %3, %1;"
                 : "+r"(low), "+r"(high)
                 : "r"(x), "r"(y));
#else
    uint64_t product = uint64_t(x) * y;
    low = host::add(low, uint32_t(product), 0, carry);
    high = host::add(high, uint32_t(product >> 32), carry.bit, carry);
#endif
}

// (low, high) += x * y + carry.
CUZK_FN void madc_cc(uint32_t &low, uint32_t &high, uint32_t x, uint32_t y, Carry &carry) {
#if defined(__CUDA_ARCH__)
    asm volatile("madc.lo.cc.u32 %0, %2, %3, %0;\n\tmadc.hi.cc.u32 %1, %2, %3, %1;"
                 : "+r"(low), "+r"(high)
                 : "r"(x), "r"(y));
#else
    uint64_t product = uint64_t(x) * y;
    low = host::add(low, uint32_t(product), carry.bit, carry);
    high = host::add(high, uint32_t(product >> 32), carry.bit, carry);
#endif
}

// (low, high) = x * y + carry, the end of a chain: the product leaves room for the carry.
CUZK_FN void mulc(uint32_t &low, uint32_t &high, uint32_t x, uint32_t y, Carry &carry) {
#if defined(__CUDA_ARCH__)
    low = 0;
    high = 0;
    asm volatile("madc.lo.cc.u32 %0, %2, %3, %0;\n\tmadc.hi.u32 %1, %2, %3, %1;"
                 : "+r"(low), "+r"(high)
                 : "r"(x), "r"(y));
#else
    uint64_t product = uint64_t(x) * y + carry.bit;
    low = uint32_t(product);
    high = uint32_t(product >> 32);
#endif
}

// (low, high) = x * y.
CUZK_FN void mul_wide(uint32_t &low, uint32_t &high, uint32_t x, uint32_t y) {
    uint64_t product = uint64_t(x) * y;
    low = uint32_t(product);
    high = uint32_t(product >> 32);
}

}  // namespace cuzk
