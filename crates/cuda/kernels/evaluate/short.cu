// Rows of at most three bits with small coefficients, and copies of one value.
#include "evaluate/program.cuh"

namespace cuzk {

constexpr u32 TILE = 256;
constexpr u32 CALLS_PER_TILE = 16;
constexpr int COPY = -128;
constexpr int ELSEWHERE = -127;

struct alignas(16) ShortUnit {
    u32 code, row, first_call, shape;
};

// Constant and coefficients are signed bytes of `integers`, the constant lowest.
struct alignas(16) ShortRow {
    u32 terms[3];
    u32 integers;
};

struct ShortParams {
    Operands operands;
    const ShortUnit *units;
    const ShortRow *rows;
};

__device__ __forceinline__ int signed_byte(u32 word, int k) {
    return static_cast<int>(word << (24 - 8 * k)) >> 24;
}

// What a row holds in one call: an entry of the table of integers, or IS_VALUE and the index of
// a value, or NOTHING where another kernel writes.
constexpr u32 IS_VALUE = 1u << 31;

__device__ __forceinline__ u32 row_entry(const Operands &p, const CallBase &call, const ShortRow &row) {
    int sum = signed_byte(row.integers, 0);
    if (sum == ELSEWHERE) return NOTHING;
    if (sum == COPY) {
        const u32 index = row.terms[0] & SOURCE_INDEX;
        switch (row.terms[0] >> SOURCE_INDEX_BITS) {
            case SOURCE_OWN_VALUE: return IS_VALUE | (call.value + index);
            case SOURCE_OWN_INPUT: return IS_VALUE | (call.input + index);
            default: return IS_VALUE | __ldg(p.arguments + call.argument + index);
        }
    }
#pragma unroll
    for (int k = 0; k < 3; k++) {
        if (row.terms[k] == NOTHING) continue;
        const u32 index = row.terms[k] & SOURCE_INDEX;
        const bool own = row.terms[k] >> SOURCE_INDEX_BITS == SOURCE_OWN_BIT;
        const u32 bit = own ? call.bit + index : __ldg(p.arguments + call.argument + index);
        if (packed_bit(p.bits, bit)) sum += signed_byte(row.integers, k + 1);
    }
    return sum + SHORT_LIMIT;
}

// a[row] or b[row] = the value of each short row of a unit: constant + coefficients times bits,
// within +-31, or one value of the witness. Montgomery, fully reduced.
//
// A block of 256 threads computes a tile of 256 rows of one template and matrix for up to 16
// calls; a thread keeps its row in registers over the calls. Two neighbouring threads then write
// an element together, so that each store of a warp is 512 bytes without gap. Shared memory: the
// table of integers (2 KiB) and the calls (512 B). Bits, arguments and program stay in L2; global
// traffic is 32 bytes written an element, and 32 read for a copy.
CUZK_KERNEL(evaluate_short_kernel, TILE, 6, ShortParams) {
    __shared__ uint4 table[2 * TABLE];
    __shared__ CallBase calls[CALLS_PER_TILE];
    const Operands &operands = p.operands;
    const u32 thread = threadIdx.x;
    const ShortUnit unit = p.units[blockIdx.x];
    const u32 rows = (unit.shape & 0xff) + 1, call_count = unit.shape >> 16;
    uint4 *out = reinterpret_cast<uint4 *>((unit.shape >> 8 & 1) ? operands.b : operands.a);

    if (thread < 2 * TABLE) table[thread] = __ldg(reinterpret_cast<const uint4 *>(operands.table) + thread);
    if (thread < 2 * call_count) {
        reinterpret_cast<uint4 *>(calls)[thread] =
            __ldg(reinterpret_cast<const uint4 *>(operands.calls + unit.first_call) + thread);
    }
    ShortRow row = {{NOTHING, NOTHING, NOTHING}, u32(ELSEWHERE) & 0xff};
    if (thread < rows) row = p.rows[unit.code + thread];
    __syncthreads();

    const u32 lane = thread % WARP, half = lane & 1;
    const uint4 *values = reinterpret_cast<const uint4 *>(operands.values);
    for (u32 c = 0; c < call_count; c++) {
        const u32 entry = row_entry(operands, calls[c], row);
        uint4 *tile = out + 2 * size_t(calls[c].row + unit.row + (thread - lane));
#pragma unroll
        for (u32 part = 0; part < 2; part++) {
            const u32 source = 16 * part + lane / 2;
            const u32 chosen = __shfl_sync(FULL_WARP, entry, source);
            if (chosen == NOTHING) continue;
            const u32 word = 2 * (chosen & ~IS_VALUE) + half;
            const uint4 piece = chosen & IS_VALUE ? __ldg(values + word) : table[word];
            __stcs(tile + 2 * source + half, piece);
        }
    }
}

}  // namespace cuzk
