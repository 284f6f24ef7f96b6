// Lists of the pairs of points to add, from the sorted digits (the rounds are those of rounds.cuh).

#include "common/kernel.cuh"

namespace cuzk {

// Rounds are fewer for fewer than 2^31 entries.
constexpr u32 MAX_ROUNDS = 32;
struct PairListsParams {
    // Sorted: bucket, and index of the base with its sign.
    const u32 *keys, *values;
    // One more than the indices of a bucket's first and last entry.
    const u32 *first, *last;
    // Round 0: signed indices of two bases, and the slot of their sum.
    u32 *first_left, *first_right, *first_out;
    // Rounds from 1 on: two slots; round r begins at starts[r].
    u32 *left, *right;
    // Pairs of each round so far; zeroed by the caller.
    u32 *counts;
    u32 entries, buckets;
    u32 starts[MAX_ROUNDS];
};

constexpr u32 LIST_THREADS = 256;
constexpr u32 LIST_WARPS = LIST_THREADS / WARP;
// Entries a thread, and a warp. Eight leave registers for four blocks a multiprocessor, and make a
// block's additions to the counters rare: one a list for 2048 entries.
constexpr u32 LIST_ENTRIES = 8;
constexpr u32 WARP_ENTRIES = WARP * LIST_ENTRIES;

// Rounds that are counted at once, in four bits each.
constexpr u32 PACKED_ROUNDS = 8;

// In how many rounds the entry of rank `rank` of a bucket of `size` entries is the left one of a pair.
// In round r, of the ceil(size / 2^r) points that are left those of rank below half of that are:
// rank < floor(ceil(size / 2^r) / 2), that is (2 rank + 1) 2^r < size. So an entry that is one in
// round r + 1 is one in round r.
__device__ __forceinline__ u32 rounds_as_left(u32 rank, u32 size) {
    const u32 odd = 2 * rank + 1;
    if (odd >= size) return 0;
    const u32 last = size - 1;
    const u32 shift = __clz(odd) - __clz(last);
    return shift + (odd << shift <= last);
}

// Of how many entries of the warp `rounds` is above r, in lane r.
__device__ __forceinline__ u32 count_rounds(const u32 (&rounds)[LIST_ENTRIES]) {
    const u32 lane = threadIdx.x % WARP;
    u32 of_lane = 0;
    bool deep = false;
#pragma unroll
    for (u32 e = 0; e < LIST_ENTRIES; e++) {
        of_lane += u32(u64(0x11111111) << 4 * min(rounds[e], PACKED_ROUNDS) >> 32);
        deep |= rounds[e] > PACKED_ROUNDS;
    }
    u32 count = 0;
#pragma unroll
    for (u32 round = 0; round < PACKED_ROUNDS / 2; round++) {
        // Rounds `round` and `round + 4`, in 16 bits each.
        u32 both = of_lane >> 4 * round & 0x000f000f;
#pragma unroll
        for (u32 step = 1; step < WARP; step *= 2) both += __shfl_xor_sync(FULL_WARP, both, step);
        if (lane == round) count = both & 0xffff;
        if (lane == round + PACKED_ROUNDS / 2) count = both >> 16;
    }
    if (!__any_sync(FULL_WARP, deep)) return count;
    for (u32 round = PACKED_ROUNDS;; round++) {
        u32 pairs = 0;
#pragma unroll
        for (u32 e = 0; e < LIST_ENTRIES; e++) {
            pairs += __popc(__ballot_sync(FULL_WARP, rounds[e] > round));
        }
        if (pairs == 0) return count;
        if (lane == round) count = pairs;
    }
}

// Entries of a warp that are left ones in the round at hand: their slots, their buckets' sizes, their
// rounds.
struct LeftEntries {
    u32 slot[WARP_ENTRIES], size[WARP_ENTRIES];
    u8 rounds[WARP_ENTRIES];
};

// Writes the pairs of all rounds. A thread speaks for the entries at its positions: in round r it
// writes the pair that an entry is the left one of, if it still is one. Work is by entries, not by
// buckets, so a bucket may be of any size. Left entries of round 1 are gathered in shared memory, and
// of those again the ones of each later round, so that all of a warp's lanes write.
//
// A warp counts its pairs of round r in lane r. Blocks take room in the lists in any order, for all
// lists at once.
// Grid: ceil(entries / 2048) blocks of 256 threads. Reads 8 bytes an entry and the bucket's range;
// writes 12 bytes a pair of round 0, and 8 a later one.
CUZK_KERNEL(msm_pair_lists_kernel, LIST_THREADS, 4, PairListsParams) {
    __shared__ u32 totals[MAX_ROUNDS];
    __shared__ LeftEntries of_warp[LIST_WARPS];
    const u32 lane = threadIdx.x % WARP;
    const u32 lanes_before = (1u << lane) - 1;
    // Consecutive entries are consecutive lanes; a warp's are 256 in a row.
    const u32 warp_first = (blockIdx.x * LIST_WARPS + threadIdx.x / WARP) * WARP_ENTRIES + lane;
    if (threadIdx.x < MAX_ROUNDS) totals[threadIdx.x] = 0;

    // For each entry: its slot, the bucket's size, its rounds. Loads that depend on each other are
    // in loops of their own, so that those of all entries are under way at once.
    u32 slot[LIST_ENTRIES], size[LIST_ENTRIES], rounds[LIST_ENTRIES];
    u32 left[LIST_ENTRIES], right[LIST_ENTRIES];
#pragma unroll
    for (u32 e = 0; e < LIST_ENTRIES; e++) {
        const u32 i = warp_first + e * WARP;
        slot[e] = i < p.entries ? p.keys[i] : p.buckets;
    }
#pragma unroll
    for (u32 e = 0; e < LIST_ENTRIES; e++) {
        const bool in_bucket = slot[e] < p.buckets;
        left[e] = in_bucket ? p.first[slot[e]] - 1 : 0;
        size[e] = in_bucket ? p.last[slot[e]] - left[e] : 0;
    }
#pragma unroll
    for (u32 e = 0; e < LIST_ENTRIES; e++) {
        const u32 i = warp_first + e * WARP, rank = i - left[e];
        rounds[e] = rounds_as_left(rank, size[e]);
        slot[e] = (left[e] + slot[e]) / 2 + rank;
        left[e] = right[e] = 0;
        if (rounds[e] > 0) {
            left[e] = p.values[i];
            right[e] = p.values[i + size[e] - size[e] / 2];
        }
    }

    const u32 count = count_rounds(rounds);
    __syncthreads();
    const u32 offset = count > 0 ? atomicAdd(&totals[lane], count) : 0;
    __syncthreads();
    if (threadIdx.x < MAX_ROUNDS && totals[lane] > 0) {
        totals[lane] = atomicAdd(&p.counts[lane], totals[lane]);
    }
    __syncthreads();
    const u32 start = totals[lane] + offset;

    LeftEntries &kept = of_warp[threadIdx.x / WARP];
    u32 at = __shfl_sync(FULL_WARP, start, 0), entries = 0;
#pragma unroll
    for (u32 e = 0; e < LIST_ENTRIES; e++) {
        const u32 ballot = __ballot_sync(FULL_WARP, rounds[e] > 0);
        if (rounds[e] > 0) {
            const u32 to = at + __popc(ballot & lanes_before);
            p.first_left[to] = left[e];
            p.first_right[to] = right[e];
            p.first_out[to] = slot[e];
        }
        at += __popc(ballot);
        const u32 deeper = __ballot_sync(FULL_WARP, rounds[e] > 1);
        if (rounds[e] > 1) {
            const u32 to = entries + __popc(deeper & lanes_before);
            kept.slot[to] = slot[e];
            kept.size[to] = size[e];
            kept.rounds[to] = rounds[e];
        }
        entries += __popc(deeper);
    }
    for (u32 round = 1; entries > 0; round++) {
        __syncwarp();
        at = __shfl_sync(FULL_WARP, start, round) + p.starts[round];
        u32 deeper_entries = 0;
        for (u32 row = 0; row < entries; row += WARP) {
            const u32 i = row + lane;
            u32 slot = 0, size = 0, rounds = 0;
            if (i < entries) {
                slot = kept.slot[i], size = kept.size[i], rounds = kept.rounds[i];
                // Points of the bucket that are left, and those that stay.
                const u32 points = (size + (1u << round) - 1) >> round;
                p.left[at + i] = slot;
                p.right[at + i] = slot + points - points / 2;
            }
            // The entries kept go to places that have been read: by other lanes, so all wait here.
            __syncwarp();
            const u32 deeper = __ballot_sync(FULL_WARP, rounds > round + 1);
            if (rounds > round + 1) {
                const u32 to = deeper_entries + __popc(deeper & lanes_before);
                kept.slot[to] = slot;
                kept.size[to] = size;
                kept.rounds[to] = rounds;
            }
            deeper_entries += __popc(deeper);
        }
        entries = deeper_entries;
    }
}

}  // namespace cuzk
