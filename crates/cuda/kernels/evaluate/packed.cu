// Packed sums: rows of many bits whose coefficients are signed powers of two.
#include "evaluate/program.cuh"

namespace cuzk {

struct alignas(16) PackedRow {
    u32 pieces, steps, constant, place;
};

struct PackedParams {
    Operands operands;
    const RowUnit *units;
    const PackedRow *rows;
    const u32 *pieces;
};

// The sum of sum_l 2^(32 (l / 4)) over the lanes' sums, as a field element; the same on all lanes.
// The sum is within +-2^256.
__device__ __forceinline__ Fr join_limbs(i64 sum) {
    sum += __shfl_xor_sync(FULL_WARP, sum, 1);
    sum += __shfl_xor_sync(FULL_WARP, sum, 2);
    Fr value;
    i64 carry = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const i64 limb = __shfl_sync(FULL_WARP, sum, 4 * k) + carry;
        value.limb[k] = u32(limb);
        carry = limb >> 32;
    }
    // Two's complement: the carry is 0 or -1.
    const bool negative = carry < 0;
    if (negative) {
        u32 add = 1;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            value.limb[k] = ~value.limb[k] + add;
            add = add & (value.limb[k] == 0);
        }
    }
    // Below 2^256 times R^2 mod r is below r R, as the product requires.
    const Fr magnitude = value.to_montgomery();
    return negative ? -magnitude : magnitude;
}

// a[row] or b[row] = constant + the sum of +-2^exponent times a bit, over the pieces of each packed
// row of a unit.
//
// A block of 8 warps takes one row for up to 32 calls, a warp for one call at a time. Every
// exponent belongs to one of 8 limbs, every limb to 4 lanes: a lane adds its pieces, each below
// 2^32, as 64-bit integers (2^31 pieces fit), then the limbs are joined with one field
// multiplication. Pieces come as whole 128-byte lines and stay in L1 over the calls; the bits
// are gathered from L2. Written: 32 bytes a row.
CUZK_KERNEL(evaluate_packed_kernel, 256, 4, PackedParams) {
    const Operands &operands = p.operands;
    const u32 lane = threadIdx.x % WARP;
    const RowUnit unit = p.units[blockIdx.x];
    const PackedRow row = p.rows[unit.row];
    const u32 *pieces = p.pieces + row.pieces + lane;
    for (u32 c = threadIdx.x / WARP; c < unit.calls; c += blockDim.x / WARP) {
        const CallBase call = operands.calls[unit.first_call + c];
        i64 sum = 0;
#pragma unroll 4
        for (u32 step = 0; step < row.steps; step++) {
            const u32 piece = __ldg(pieces + step * WARP);
            if (piece == NOTHING) continue;
            const u32 index = piece & 0x1ffffff;
            const u32 bit = piece >> 31 ? __ldg(operands.arguments + call.argument + index) : call.bit + index;
            const i64 term = i64(packed_bit(operands.bits, bit)) << (piece >> 25 & 31);
            sum += piece >> 30 & 1 ? -term : term;
        }
        Fr value = join_limbs(sum);
        if (row.constant != NOTHING) value += load_fr(operands.coefficients + row.constant);
        if (lane == 0) store_fr(out_row(operands, call, row.place & ~PLACE_IS_B, row.place >> 31), value);
    }
}

}  // namespace cuzk
