// The last sums, over points few enough that latency counts more than multiplications: in XYZZ
// coordinates, which need no inversion.

#pragma once

#include "curve/xyzz.cuh"
#include "msm/rounds.cuh"

namespace cuzk {

constexpr u32 SUM_THREADS = 128;

// sum += point, as calls: inlined, the additions of this file would take the compiler minutes.
template <class F>
CUZK_NOINLINE __device__ void add_to(Xyzz<F> &sum, const Xyzz<F> &point) {
    sum.add(point);
}
template <class F>
CUZK_NOINLINE __device__ void add_to(Xyzz<F> &sum, const Affine<F> &point) {
    sum.add(point);
}

// The value of lane `lane ^ step`.
template <class F>
__device__ __forceinline__ Xyzz<F> shuffle_xor(const Xyzz<F> &value, u32 step) {
    Xyzz<F> other;
    const u32 *from = reinterpret_cast<const u32 *>(&value);
    u32 *to = reinterpret_cast<u32 *>(&other);
#pragma unroll
    for (u32 i = 0; i < sizeof(value) / 4; i++) to[i] = __shfl_xor_sync(FULL_WARP, from[i], step);
    return other;
}

// The sum over groups of `width` lanes (a power of two), in each of them.
template <class F>
__device__ __forceinline__ void sum_over_lanes(Xyzz<F> &value, u32 width) {
#pragma unroll 1
    for (u32 step = 1; step < width; step *= 2) add_to(value, shuffle_xor(value, step));
}

// The sum over the block, in thread 0.
template <class F>
__device__ __forceinline__ void sum_over_block(Xyzz<F> &value) {
    __shared__ __align__(16) unsigned char bytes[SUM_THREADS / WARP * sizeof(Xyzz<F>)];
    Xyzz<F> *const of_warp = reinterpret_cast<Xyzz<F> *>(bytes);
    sum_over_lanes(value, WARP);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = value;
    __syncthreads();
    if (threadIdx.x < WARP) {
        value = of_warp[threadIdx.x % (SUM_THREADS / WARP)];
        sum_over_lanes(value, SUM_THREADS / WARP);
    }
}

// === Rows and columns ===

template <class F>
struct SumLinesParams {
    // After `rounds` rounds of the reduction: [rows][columns/2], of which the first 2^(column_bits -
    // rounds) points of every row count, then [blocks][rows of a block/2][columns], of which the
    // first 2^(row_bits - rounds) rows of every block count.
    const Affine<F> *points;
    // Sums of the rows, and of the columns of each block: [rows], [blocks][columns].
    Xyzz<F> *row_sums, *column_sums;
    Grid grid;
    u32 rounds;
    // Lanes that share a line: a power of two up to 32.
    u32 lanes;
};

// The sum of every row and column over the points that the folds have left.
// Grid: ceil((rows + blocks * columns) * lanes / 128) blocks of 128 threads.
template <class F>
__device__ __forceinline__ void sum_lines(const SumLinesParams<F> &p) {
    const u32 rows = p.grid.blocks << p.grid.row_bits;
    const u32 columns = p.grid.blocks << p.grid.column_bits;
    const u32 line = (blockIdx.x * SUM_THREADS + threadIdx.x) / p.lanes;
    const u32 lane = threadIdx.x % p.lanes;

    const Affine<F> *points = p.points;
    u32 count = 0, stride = 1;
    if (line < rows) {
        points += u64(line) << (p.grid.column_bits - 1);
        count = 1u << (p.grid.column_bits - p.rounds);
    } else if (line - rows < columns) {
        const u32 block = (line - rows) >> p.grid.column_bits;
        const u32 column = (line - rows) & ((1u << p.grid.column_bits) - 1);
        const u32 half_block_bits = p.grid.row_bits + p.grid.column_bits - 1;
        points += (u64(p.grid.blocks + block) << half_block_bits) + column;
        count = 1u << (p.grid.row_bits - p.rounds);
        stride = 1u << p.grid.column_bits;
    }
    Xyzz<F> sum = Xyzz<F>::infinity();
#pragma unroll 1
    for (u32 i = lane; i < count; i += p.lanes) add_to(sum, reduced(points[u64(i) * stride]));
    sum_over_lanes(sum, p.lanes);
    if (lane != 0 || count == 0) return;
    if (line < rows) {
        p.row_sums[line] = sum;
    } else {
        p.column_sums[line - rows] = sum;
    }
}

// === Sums by the bits of the index ===

// A set of buckets: its rows and its columns (those of all its blocks) among all sets'.
struct BucketSet {
    u32 first_row, row_bits;
    u32 first_column, column_bits, block_bits;
};

template <class F>
struct SumBitsParams {
    const Xyzz<F> *row_sums, *column_sums;
    const BucketSet *sets;
    // [sets][sums_per_set][parts].
    Xyzz<F> *sums;
    u32 sums_per_set;
    // Blocks that share a sum.
    u32 parts;
};

// For each set and each bit t of the bucket index the sum of the buckets whose index has bit t set;
// after the bits, the sum of all buckets; after that, infinity. The set's whole sum is
// sum_t 2^t sums[t] + sums[bits], which the host computes.
// Grid: sets * sums_per_set * parts blocks of 128 threads.
template <class F>
__device__ __forceinline__ void sum_bits(const SumBitsParams<F> &p) {
    const u32 part = blockIdx.x % p.parts;
    const u32 bit = blockIdx.x / p.parts % p.sums_per_set;
    const BucketSet set = p.sets[blockIdx.x / p.parts / p.sums_per_set];

    // Of `lines` lines those whose number has bit `selected` set, or all.
    const Xyzz<F> *lines = p.row_sums + set.first_row;
    u32 count = 0, selected = 0;
    bool all = false;
    if (bit < set.column_bits) {
        lines = p.column_sums + set.first_column;
        count = 1u << (set.column_bits + set.block_bits - 1);
        selected = bit;
    } else if (bit < set.column_bits + set.row_bits) {
        count = 1u << (set.row_bits - 1);
        selected = bit - set.column_bits;
    } else if (bit == set.column_bits + set.row_bits) {
        count = 1u << set.row_bits;
        all = true;
    }
    const u32 below = (1u << selected) - 1;
    Xyzz<F> sum = Xyzz<F>::infinity();
#pragma unroll 1
    for (u32 i = part * SUM_THREADS + threadIdx.x; i < count; i += p.parts * SUM_THREADS) {
        const u32 line = all ? i : (i & ~below) << 1 | 1u << selected | (i & below);
        add_to(sum, lines[line]);
    }
    sum_over_block(sum);
    if (threadIdx.x == 0) p.sums[blockIdx.x] = sum;
}

// === Chosen points ===

template <class F>
struct SumPointsParams {
    const Affine<F> *points;
    Xyzz<F> *sums;
    // Points before the folds, and rounds of folds since.
    const u32 *count;
    u32 rounds;
};

// The sum of the points that the folds have left, a part of it for each block.
// Grid: any number of blocks of 128 threads.
template <class F>
__device__ __forceinline__ void sum_points(const SumPointsParams<F> &p) {
    const u32 count = points_after(*p.count, p.rounds);
    Xyzz<F> sum = Xyzz<F>::infinity();
#pragma unroll 1
    for (u32 i = blockIdx.x * SUM_THREADS + threadIdx.x; i < count; i += gridDim.x * SUM_THREADS) {
        add_to(sum, reduced(p.points[i]));
    }
    sum_over_block(sum);
    if (threadIdx.x == 0) p.sums[blockIdx.x] = sum;
}

}  // namespace cuzk
