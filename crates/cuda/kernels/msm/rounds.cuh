// The rounds of a sum: which points are added to which.
//
// A bucket of m points needs rounds of halving: with h = ceil(m/2), point j takes in point j + h for
// j < floor(m/2), which leaves h points. All pairs of a round are independent, over all buckets. The
// first round reads the bases through the sorted indices and writes to *slots*: bucket b, whose run
// of entries begins at s, has its ceil(m/2) points from slot floor((s + b)/2) on. That leaves
// room enough for every bucket (the next one begins at floor((s + m + b + 1)/2) or later), needs no
// prefix sum, and takes (entries + buckets)/2 slots in all. Later rounds work in place.

#pragma once

#include "msm/fold.cuh"

namespace cuzk {

// === Buckets of a single point ===

template <class F>
struct CopySinglesParams {
    const Affine<F> *bases;
    Affine<F> *slots;
    // Sorted signed indices of bases; one more than the indices of a bucket's first and last entry.
    const u32 *values, *first, *last;
    u32 buckets;
};

// Carries the points over that have no partner in the first round: the middle one of every bucket of
// odd size.
// Grid: a thread a bucket, in blocks of FOLD_THREADS. Reads 8 bytes a bucket, for every single an index and a
// base; writes a slot.
template <class F>
__device__ __forceinline__ void copy_singles(const CopySinglesParams<F> &p) {
    const u32 bucket = blockIdx.x * FOLD_THREADS + threadIdx.x;
    if (bucket >= p.buckets || p.first[bucket] == 0) return;
    const u32 start = p.first[bucket] - 1, size = p.last[bucket] - start;
    if (size % 2 == 0) return;
    const u32 base = p.values[start + size / 2];
    Affine<F> point = p.bases[base & ~SIGN_OF_INDEX];
    if (base & SIGN_OF_INDEX) point.y = -point.y;
    p.slots[(start + bucket) / 2 + size / 2] = point;
}

// === Operands of the folds ===

// Round 0 over the lists.
template <class F>
struct BaseListOperands {
    static constexpr bool SIGNED = true;
    const Affine<F> *source;
    Affine<F> *result;
    const u32 *left, *right, *out;

    __device__ __forceinline__ Pair pair(u32 i) const { return {left[i], right[i], out[i]}; }
};

// A later round over the lists: in place.
template <class F>
struct SlotListOperands {
    static constexpr bool SIGNED = false;
    const Affine<F> *source;
    Affine<F> *result;
    const u32 *left, *right;

    __device__ __forceinline__ Pair pair(u32 i) const { return {left[i], right[i], left[i]}; }
};

// The two-dimensional reduction: the sum of (b + 1) S_b over the buckets b of a set needs only the
// sums over rows and over columns when b is written as row * 2^column_bits + column. Buckets come
// in blocks of 2^row_bits rows; a set is one or more blocks, whose rows follow each other.
struct Grid {
    u32 blocks, row_bits, column_bits;
};

// First round, over the blocks of one pass: the right half of every row onto its left half, and the
// lower half of every block onto its upper half, out of the buckets' slots. result: [rows][columns/2],
// then [blocks][rows of a block/2][columns], of the blocks of all passes that are reduced together.
template <class F>
struct BucketOperands {
    static constexpr bool SIGNED = false;
    const Affine<F> *source;
    Affine<F> *result;
    // One more than the index of the bucket's first entry, 0 for an empty bucket.
    const u32 *first;
    // A slot that holds infinity.
    u32 infinity;
    Grid grid;
    // Where the pass's first row and its first block begin in `result`.
    u32 rows_at, columns_at;

    __device__ __forceinline__ u32 slot(u32 bucket) const {
        const u32 start = first[bucket];
        return start == 0 ? infinity : (start - 1 + bucket) / 2;
    }

    __device__ __forceinline__ Pair pair(u32 i) const {
        const u32 half_block_bits = grid.row_bits + grid.column_bits - 1;
        const u32 half = grid.blocks << half_block_bits;
        u32 bucket, step, out;
        if (i < half) {
            out = rows_at + i;
            step = 1u << (grid.column_bits - 1);
            bucket = (i >> (grid.column_bits - 1) << grid.column_bits) | (i & (step - 1));
        } else {
            step = 1u << half_block_bits;
            const u32 j = i - half;
            out = columns_at + j;
            bucket = (j >> half_block_bits << (half_block_bits + 1)) | (j & (step - 1));
        }
        return {slot(bucket), slot(bucket + step), out};
    }
};

// Round `round` >= 1 of the reduction, in place.
template <class F>
struct GridOperands {
    static constexpr bool SIGNED = false;
    const Affine<F> *source;
    Affine<F> *result;
    Grid grid;
    u32 round;

    // Pairs of the rows, and of rows and columns together.
    __device__ __forceinline__ u32 row_pairs() const {
        return (grid.blocks << (grid.row_bits + grid.column_bits - 1)) >> round;
    }

    __device__ __forceinline__ Pair pair(u32 i) const {
        const u32 half_block_bits = grid.row_bits + grid.column_bits - 1;
        const u32 rows = row_pairs();
        u32 left, step;
        if (i < rows) {
            const u32 bits = grid.column_bits - 1 - round;
            step = 1u << bits;
            left = (i >> bits << (grid.column_bits - 1)) | (i & (step - 1));
        } else {
            const u32 bits = half_block_bits - round;
            step = 1u << bits;
            const u32 j = i - rows;
            left = (grid.blocks << half_block_bits) + ((j >> bits << half_block_bits) | (j & (step - 1)));
        }
        return {left, left + step, left};
    }
};

// First round of a sum of chosen points: of m indices the second half onto the first.
template <class F>
struct SelectedOperands {
    static constexpr bool SIGNED = false;
    const Affine<F> *source;
    Affine<F> *result;
    const u32 *indices;
    u32 half;

    __device__ __forceinline__ Pair pair(u32 i) const { return {indices[i], indices[i + half], i}; }
};

// A later round: m points, the second half onto the first, in place.
template <class F>
struct HalfOperands {
    static constexpr bool SIGNED = false;
    const Affine<F> *source;
    Affine<F> *result;
    u32 half;

    __device__ __forceinline__ Pair pair(u32 i) const { return {i, i + half, i}; }
};

// Points that are left of `count` after `rounds` rounds of halving: ceil(count / 2^rounds).
__device__ __forceinline__ u32 points_after(u32 count, u32 rounds) {
    return u32((u64(count) + (u64(1) << rounds) - 1) >> rounds);
}

// === Parameters and bodies of the fold kernels ===

template <class F>
struct FoldBasesParams {
    BaseListOperands<F> operands;
    FoldScratch scratch;
    const u32 *pairs;
};

template <class F>
struct FoldSlotsParams {
    SlotListOperands<F> operands;
    FoldScratch scratch;
    const u32 *pairs;
};

template <class F>
struct FoldBucketsParams {
    BucketOperands<F> operands;
    FoldScratch scratch;
};

template <class F>
struct FoldGridParams {
    GridOperands<F> operands;
    FoldScratch scratch;
};

template <class F>
struct FoldChosenParams {
    const Affine<F> *bases;
    const u32 *indices;
    Affine<F> *points;
    FoldScratch scratch;
    // Chosen points before the first round.
    const u32 *count;
    u32 round;
};

template <class F>
__device__ __forceinline__ void fold_buckets(const FoldBucketsParams<F> &p) {
    const Grid &grid = p.operands.grid;
    fold_pairs<F>(p.operands, grid.blocks << (grid.row_bits + grid.column_bits), p.scratch);
}

template <class F>
__device__ __forceinline__ void fold_grid(const FoldGridParams<F> &p) {
    fold_pairs<F>(p.operands, 2 * p.operands.row_pairs(), p.scratch);
}

template <class F>
__device__ __forceinline__ void fold_selected(const FoldChosenParams<F> &p) {
    const u32 count = *p.count, half = points_after(count, 1);
    // Of an odd number the middle one has no partner.
    if (count % 2 == 1 && blockIdx.x == 0 && threadIdx.x == 0) {
        p.points[half - 1] = p.bases[p.indices[half - 1]];
    }
    const SelectedOperands<F> operands = {p.bases, p.points, p.indices, half};
    fold_pairs<F>(operands, count / 2, p.scratch);
}

template <class F>
__device__ __forceinline__ void fold_halves(const FoldChosenParams<F> &p) {
    const u32 count = points_after(*p.count, p.round);
    const HalfOperands<F> operands = {p.points, p.points, points_after(count, 1)};
    fold_pairs<F>(operands, count / 2, p.scratch);
}

}  // namespace cuzk
