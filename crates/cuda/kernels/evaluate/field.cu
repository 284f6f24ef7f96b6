// Rows with field elements: sums of products.
#include "evaluate/product_sum.cuh"
#include "evaluate/program.cuh"

namespace cuzk {

struct alignas(16) Slice {
    u32 terms, steps, lanes, rows;
};

struct alignas(16) FieldUnit {
    u32 slice, slices, call, unused;
};

struct FieldParams {
    Operands operands;
    const FieldUnit *units;
    const Slice *slices;
    const u32 *slice_rows;
    const u32 *sources;
    const u16 *ids;
};

// a[row] or b[row] = the sum of coefficient times value over the terms of each row of the unit's
// slices, for one call.
//
// A block of 4 warps takes up to 4 slices, a lane one row. The rows of a slice are about equally
// long and their terms interleaved, so a step of a warp reads its terms without gap; coefficients
// come from L1, values from L1 and L2. Products are summed before reduction: 64 multiplications of
// limbs a term instead of 136. Traffic: 6 bytes of program, 32 of coefficient and 32 of value
// a term, nearly all of it from the caches; written 32 bytes a row.
CUZK_KERNEL(evaluate_field_kernel, 128, 4, FieldParams) {
    const u32 warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const FieldUnit unit = p.units[blockIdx.x];
    if (warp >= unit.slices) return;
    const Slice slice = p.slices[unit.slice + warp];
    const u32 lanes = slice.lanes & ~PLACE_IS_B;
    if (lane >= lanes) return;
    const CallBase call = p.operands.calls[unit.call];
    ProductSum sum = ProductSum::zero();
    for (u32 step = 0; step < slice.steps; step++) {
        const u32 term = slice.terms + step * lanes + lane;
        const Fr value = load_fr(value_of(p.operands, call, __ldg(p.sources + term)));
        sum.add(value, load_fr(p.operands.coefficients + __ldg(p.ids + term)));
    }
    const u32 row = p.slice_rows[slice.rows + lane];
    store_fr(out_row(p.operands, call, row, slice.lanes >> 31), sum.reduce());
}

struct alignas(16) LongRow {
    u32 terms, count, place, unused;
};

struct LongParams {
    Operands operands;
    const RowUnit *units;
    const LongRow *rows;
    const u32 *sources;
    const u16 *ids;
};

// The same for rows of more than 256 terms.
//
// A block of 8 warps takes one row for up to 32 calls, a warp for one call at a time: each lane
// sums every 32nd term, and the lanes' sums are added as field elements.
CUZK_KERNEL(evaluate_long_kernel, 256, 2, LongParams) {
    const u32 lane = threadIdx.x % WARP;
    const RowUnit unit = p.units[blockIdx.x];
    const LongRow row = p.rows[unit.row];
    for (u32 c = threadIdx.x / WARP; c < unit.calls; c += blockDim.x / WARP) {
        const CallBase call = p.operands.calls[unit.first_call + c];
        ProductSum sum = ProductSum::zero();
        for (u32 k = lane; k < row.count; k += WARP) {
            const u32 term = row.terms + k;
            const Fr value = load_fr(value_of(p.operands, call, __ldg(p.sources + term)));
            sum.add(value, load_fr(p.operands.coefficients + __ldg(p.ids + term)));
        }
        Fr value = sum.reduce();
#pragma unroll
        for (int other = 16; other > 0; other /= 2) {
            Fr theirs;
#pragma unroll
            for (int k = 0; k < 8; k++) theirs.limb[k] = __shfl_xor_sync(FULL_WARP, value.limb[k], other);
            value += theirs;
        }
        if (lane == 0) {
            store_fr(out_row(p.operands, call, row.place & ~PLACE_IS_B, row.place >> 31), value);
        }
    }
}

}  // namespace cuzk
