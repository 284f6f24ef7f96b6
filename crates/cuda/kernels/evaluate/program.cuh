// The words of a program, as src/evaluate/program.rs lays them out, and how their sources are read.
#pragma once

#include "common/kernel.cuh"
#include "field/fr.cuh"

namespace cuzk {

constexpr u32 NOTHING = 0xffffffffu;

// Kinds of a source: its bits 31 to 29; the index is below.
constexpr u32 SOURCE_ONE = 0;
constexpr u32 SOURCE_OWN_BIT = 1;
constexpr u32 SOURCE_ARGUMENT_BIT = 2;
constexpr u32 SOURCE_OWN_VALUE = 3;
constexpr u32 SOURCE_OWN_INPUT = 4;
constexpr u32 SOURCE_ARGUMENT_VALUE = 5;
constexpr u32 SOURCE_INDEX_BITS = 29;
constexpr u32 SOURCE_INDEX = (1u << SOURCE_INDEX_BITS) - 1;

// Bit 31 of a place: the row is one of B.
constexpr u32 PLACE_IS_B = 1u << 31;

// Small integers: entry k of the table is k - SHORT_LIMIT as a field element.
constexpr int SHORT_LIMIT = 31;
constexpr u32 TABLE = 2 * SHORT_LIMIT + 1;

struct alignas(16) CallBase {
    u32 row, bit, value, input, argument;
    u32 unused[3];
};

struct alignas(16) RowUnit {
    u32 row, first_call, calls, unused;
};

// What every evaluation kernel reads and writes. The same struct is the head of their parameters.
struct Operands {
    const u32 *bits;
    const Fr *values;  // the inputs, then the dense part
    const CallBase *calls;
    const u32 *arguments;
    const Fr *coefficients;
    const Fr *table;
    Fr *a;
    Fr *b;
};

// Bit `index` of the packed bits: 0 or 1.
__device__ __forceinline__ u32 packed_bit(const u32 *bits, u32 index) {
    return __ldg(bits + (index >> 5)) >> (index & 31) & 1;
}

__device__ __forceinline__ Fr load_fr(const Fr *from) {
    const uint4 *words = reinterpret_cast<const uint4 *>(from);
    const uint4 low = __ldg(words), high = __ldg(words + 1);
    return Fr{{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}

// Past the caches' turn: what is written here is next read by the transforms.
__device__ __forceinline__ void store_fr(Fr *to, const Fr &value) {
    const u32 *w = value.limb;
    uint4 *words = reinterpret_cast<uint4 *>(to);
    __stcs(words, make_uint4(w[0], w[1], w[2], w[3]));
    __stcs(words + 1, make_uint4(w[4], w[5], w[6], w[7]));
}

// Where the value of a source lies: bits are entries 0 and 1 of the table of integers, nothing is
// the 0.
__device__ __forceinline__ const Fr *value_of(const Operands &p, const CallBase &call, u32 source) {
    const u32 index = source & SOURCE_INDEX;
    const Fr *zero = p.table + SHORT_LIMIT;
    switch (source >> SOURCE_INDEX_BITS) {
        case SOURCE_OWN_VALUE: return p.values + (call.value + index);
        case SOURCE_ARGUMENT_VALUE: return p.values + __ldg(p.arguments + call.argument + index);
        case SOURCE_OWN_INPUT: return p.values + (call.input + index);
        case SOURCE_OWN_BIT: return zero + packed_bit(p.bits, call.bit + index);
        case SOURCE_ARGUMENT_BIT:
            return zero + packed_bit(p.bits, __ldg(p.arguments + call.argument + index));
        case SOURCE_ONE: return zero + 1;
        default: return zero;
    }
}

// The element of a or b that a call's row goes to.
__device__ __forceinline__ Fr *out_row(const Operands &p, const CallBase &call, u32 row, bool is_b) {
    return (is_b ? p.b : p.a) + (call.row + row);
}

}  // namespace cuzk
