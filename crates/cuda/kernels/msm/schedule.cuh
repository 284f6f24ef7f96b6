// How the warps of a grid share the pairs of a round.
//
// A warp works on `rows` of 32 consecutive pairs, a lane on one pair of each row, and makes one
// inversion for all rows of a chunk: large chunks make inversions rare. Rounds with many pairs hand
// out chunks on demand, large ones first and ever smaller ones at the end, so that all warps end
// together although some multiprocessors run faster than others. Rounds with few pairs are split
// evenly at once; the shorter they are, the fewer warps take part, because an inversion
// costs its latency whatever it is shared by.

#pragma once

#include "common/kernel.cuh"

namespace cuzk {

struct Schedule {
    // Chunks handed out so far; zeroed before the launch.
    u32 *chunks;
    // Largest chunk, in rows.
    u32 batch;
    // So many blocks of the grid are one on each multiprocessor.
    u32 multiprocessors;
};

struct Chunk {
    u32 first_row, rows;
};

// Above this many rows for each of the grid's warps, chunks are handed out on demand. On the H200 the even
// split, with its one inversion, is faster by 2 to 6 % at 124 and 248 rows, equal or slower by 2 % at 248 rows of
// random slots, and slower by 5 % at 496 rows of random bases.
constexpr u32 EVEN_ROWS = 250;
// Smallest chunk handed out on demand: an inversion costs about 23 products, so less than one a pair.
constexpr u32 SMALLEST_CHUNK = 32;

// Chunk `index` of `rows` rows: `batch` rows each while that leaves at least twice as much for
// every warp; then each `warps` chunks hold half of what is left (4/5 of it makes fewer inversions, but
// warps differ so much that it was slower by 2 %). No rows when there is none left.
__device__ __forceinline__ Chunk chunk_on_demand(u32 index, u32 rows, u32 warps, u32 batch) {
    u32 begin = 0;
    for (;;) {
        const u32 rest = rows - begin;
        const u32 share = rest / (2 * warps);
        if (share <= SMALLEST_CHUNK) {
            const u64 first = begin + u64(index) * SMALLEST_CHUNK;
            if (first >= rows) return {rows, 0};
            return {u32(first), min(SMALLEST_CHUNK, rows - u32(first))};
        }
        const u32 size = min(share, batch);
        const u32 chunks = share >= batch ? max(1u, (rest - 2 * warps * batch) / batch) : warps;
        if (index < chunks) return {begin + index * size, size};
        index -= chunks;
        begin += chunks * size;
    }
}

// Blocks of the grid that take part in a round of `rows` rows. On the H200 with blocks of four
// warps one a multiprocessor is best up to 2^16 pairs, two up to 2^18.
__device__ __forceinline__ u32 blocks_for(u32 rows, const Schedule &schedule) {
    const u32 row_capacity = 16 * schedule.multiprocessors;
    if (rows <= row_capacity) return min(gridDim.x, schedule.multiprocessors);
    if (rows <= 4 * row_capacity) return min(gridDim.x, 2 * schedule.multiprocessors);
    return gridDim.x;
}

// The chunks of a warp, one after the other; all lanes of a warp see the same ones.
class WarpChunks {
  public:
    __device__ __forceinline__ WarpChunks(const Schedule &schedule, u32 rows)
        : schedule(schedule), rows(rows) {
        const u32 warps_per_block = blockDim.x / WARP;
        const u32 blocks = blocks_for(rows, schedule);
        warps = blocks * warps_per_block;
        on_demand = rows / EVEN_ROWS >= warps;
        // Consecutive rows, as evenly as whole rows allow, and in equal chunks.
        const u32 warp = blockIdx.x * warps_per_block + threadIdx.x / WARP;
        next_row = end_row = 0;
        if (blockIdx.x >= blocks) {
            on_demand = false;
        } else if (!on_demand) {
            next_row = u32(u64(rows) * warp / warps);
            end_row = u32(u64(rows) * (warp + 1) / warps);
        }
    }

    // No rows when there is none left.
    __device__ __forceinline__ Chunk next() {
        if (on_demand) {
            u32 index = 0;
            if (threadIdx.x % WARP == 0) index = atomicAdd(schedule.chunks, 1);
            return chunk_on_demand(__shfl_sync(FULL_WARP, index, 0), rows, warps, schedule.batch);
        }
        const u32 rest = end_row - next_row;
        const u32 chunks = (rest + schedule.batch - 1) / schedule.batch;
        const Chunk chunk = {next_row, chunks == 0 ? 0 : (rest + chunks - 1) / chunks};
        next_row += chunk.rows;
        return chunk;
    }

  private:
    const Schedule &schedule;
    u32 rows, warps, next_row, end_row;
    bool on_demand;
};

}  // namespace cuzk
