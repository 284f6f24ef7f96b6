// Lists of the pairs of points to add, from the sorted digits (the rounds are those of rounds.cuh).

#include "common/kernel.cuh"

namespace cuzk {

constexpr u32 MAX_ROUNDS = 32;
// Rounds are fewer than 32 for fewer than 2^31 entries; the last counter is that of the points
// without a partner in round 0.
constexpr u32 SINGLES = MAX_ROUNDS - 1;

struct PairListsParams {
    // Sorted: bucket, and index of the base with its sign.
    const u32 *keys, *values;
    // One more than the indices of a bucket's first and last entry.
    const u32 *first, *last;
    // Round 0: signed indices of two bases, and the slot of their sum.
    u32 *first_left, *first_right, *first_out;
    // Rounds from 1 on: two slots; round r begins at starts[r].
    u32 *left, *right;
    // The middle one of every bucket of odd size: signed index of the base, and its slot.
    u32 *singles, *places;
    // Pairs of each round, and singles, so far; zeroed by the caller.
    u32 *counts;
    u32 entries, buckets;
    u32 starts[MAX_ROUNDS];
};

constexpr u32 LIST_THREADS = 256;
// Entries a thread. Eight leave registers for four blocks a multiprocessor, and make a block's
// additions to the counters rare: one a list for 2048 entries.
constexpr u32 LIST_ENTRIES = 8;

// Writes the pairs of all rounds. A thread speaks for the entries at its positions: in round r it
// writes the pair that an entry is the left one of, if it still is one. An entry that is one in
// round r + 1 is one in round r, so an entry is known by its number of rounds. Work is by entries, not
// by buckets, so a bucket may be of any size.
//
// A warp counts its pairs of round r in lane r. Blocks take room in the lists in any order, for all
// lists at once.
// Grid: ceil(entries / 2048) blocks of 256 threads. Reads 8 bytes an entry, the bucket's range and the
// partner's value; writes 12 bytes a pair of round 0, and 8 a later one or a single.
CUZK_KERNEL(msm_pair_lists_kernel, LIST_THREADS, 4, PairListsParams) {
    __shared__ u32 totals[MAX_ROUNDS];
    const u32 lane = threadIdx.x % WARP;
    const u32 lanes_before = (1u << lane) - 1;
    // Consecutive entries are consecutive lanes; a warp's are 256 in a row.
    const u32 warp_first = (blockIdx.x * LIST_THREADS + threadIdx.x / WARP * WARP) * LIST_ENTRIES + lane;
    if (threadIdx.x < MAX_ROUNDS) totals[threadIdx.x] = 0;

    // For each entry: its rank in the bucket, the bucket's size and first slot, its rounds.
    u32 rank[LIST_ENTRIES], size[LIST_ENTRIES], place[LIST_ENTRIES], rounds[LIST_ENTRIES];
#pragma unroll
    for (u32 e = 0; e < LIST_ENTRIES; e++) {
        const u32 i = warp_first + e * WARP;
        rank[e] = size[e] = place[e] = rounds[e] = 0;
        const u32 key = i < p.entries ? p.keys[i] : p.buckets;
        if (key >= p.buckets) continue;
        const u32 start = p.first[key] - 1;
        rank[e] = i - start;
        size[e] = p.last[key] - start;
        place[e] = (start + key) / 2;
        for (u32 left = size[e]; rank[e] < left / 2; left -= left / 2) rounds[e]++;
    }

    u32 count = 0, warp_rounds = 0;
    for (;; warp_rounds++) {
        u32 pairs = 0;
#pragma unroll
        for (u32 e = 0; e < LIST_ENTRIES; e++) {
            pairs += __popc(__ballot_sync(FULL_WARP, rounds[e] > warp_rounds));
        }
        if (pairs == 0) break;
        if (lane == warp_rounds) count = pairs;
    }
    u32 singles = 0;
#pragma unroll
    for (u32 e = 0; e < LIST_ENTRIES; e++) {
        singles += __popc(__ballot_sync(FULL_WARP, size[e] % 2 == 1 && rank[e] == size[e] / 2));
    }
    if (lane == SINGLES) count = singles;

    __syncthreads();
    const u32 offset = count > 0 ? atomicAdd(&totals[lane], count) : 0;
    __syncthreads();
    if (threadIdx.x < MAX_ROUNDS && totals[lane] > 0) {
        totals[lane] = atomicAdd(&p.counts[lane], totals[lane]);
    }
    __syncthreads();
    const u32 start = totals[lane] + offset;

    for (u32 round = 0; round < warp_rounds; round++) {
        u32 at = __shfl_sync(FULL_WARP, start, round) + (round == 0 ? 0 : p.starts[round]);
#pragma unroll
        for (u32 e = 0; e < LIST_ENTRIES; e++) {
            const bool active = rounds[e] > round;
            const u32 ballot = __ballot_sync(FULL_WARP, active);
            if (active) {
                const u32 slot = place[e] + rank[e], to = at + __popc(ballot & lanes_before);
                // Points of the bucket that are left, and those that stay.
                const u32 left = (size[e] + (1u << round) - 1) >> round;
                const u32 half = left - left / 2;
                if (round == 0) {
                    const u32 i = warp_first + e * WARP;
                    p.first_left[to] = p.values[i];
                    p.first_right[to] = p.values[i + half];
                    p.first_out[to] = slot;
                } else {
                    p.left[to] = slot;
                    p.right[to] = slot + half;
                }
            }
            at += __popc(ballot);
        }
    }
    u32 at = __shfl_sync(FULL_WARP, start, SINGLES);
#pragma unroll
    for (u32 e = 0; e < LIST_ENTRIES; e++) {
        const bool single = size[e] % 2 == 1 && rank[e] == size[e] / 2;
        const u32 ballot = __ballot_sync(FULL_WARP, single);
        if (single) {
            const u32 to = at + __popc(ballot & lanes_before);
            p.singles[to] = p.values[warp_first + e * WARP];
            p.places[to] = place[e] + rank[e];
        }
        at += __popc(ballot);
    }
}

}  // namespace cuzk
