// The part of a group sum that does not touch points: signed digits of the scalars, the buckets'
// places among the sorted digits, and the list of points that a bitmap selects.

#include "common/kernel.cuh"
#include "msm/signed.cuh"

namespace cuzk {

// One window of the digits, in the order of `bit`.
struct DigitWindow {
    // The digit's lowest bit in the scalar, and its number of bits.
    u32 bit, width;
    // Key of the digits 1 and -1; the digits d and -d have first_key + |d| - 1.
    u32 first_key;
    // Key of the digit 0: one above all buckets of the window's pass.
    u32 zero_key;
    // Added to the point's index: where the multiples of the bases begin that this window uses.
    u32 first_point;
    // Where its keys go, in terms: key i of the window is at slot * terms + i. NO_SLOT: not now.
    u32 slot;
};

constexpr u32 NO_SLOT = 0xffffffffu;
// The sign of a point's index.
constexpr u32 NEGATIVE = 0x80000000u;

struct DigitsParams {
    // terms x 8 limbs, canonical, below r.
    const u32 *scalars;
    // Index of each term's scalar and point; null: the term's own index.
    const u32 *scalar_indices, *point_indices;
    const DigitWindow *windows;
    u32 *keys, *values;
    u32 terms, window_count;
    // Sum over the windows of 2^(bit + width - 1).
    u32 halves[SHIFTED_LIMBS];
};

// Digits in [-2^(width-1), 2^(width-1)) with sum over the windows of digit 2^bit = +-scalar, as
// (key, point index | sign) for sorting.
//
// With H = sum of 2^(bit + width - 1) added, the bits of a window less 2^(width - 1) are its
// digit: no carry runs from window to window.
// Grid: ceil(terms / 256) blocks of 256 threads, a thread a term. Reads 32 bytes a term (and 8 for
// the indices), writes 8 bytes a digit.
CUZK_KERNEL(msm_digits_kernel, 256, 1, DigitsParams) {
    const u32 term = blockIdx.x * blockDim.x + threadIdx.x;
    if (term >= p.terms) return;
    const u64 scalar = p.scalar_indices ? p.scalar_indices[term] : term;
    const u32 point = p.point_indices ? p.point_indices[term] : term;

    u32 value[SHIFTED_LIMBS];
    const uint4 *limbs = reinterpret_cast<const uint4 *>(p.scalars) + 2 * scalar;
    const uint4 low = limbs[0], high = limbs[1];
    value[0] = low.x, value[1] = low.y, value[2] = low.z, value[3] = low.w;
    value[4] = high.x, value[5] = high.y, value[6] = high.z, value[7] = high.w;
    value[8] = 0;
    const bool flipped = take_smaller_sign(value);
    Carry carry;
    value[0] = add_cc(value[0], p.halves[0], carry);
#pragma unroll
    for (int i = 1; i < SHIFTED_LIMBS - 1; i++) value[i] = addc_cc(value[i], p.halves[i], carry);
    value[8] = addc(value[8], p.halves[8], carry);

    u32 shifted = 0;
    for (u32 w = 0; w < p.window_count; w++) {
        const DigitWindow window = p.windows[w];
        if (window.slot == NO_SLOT) continue;
        shift_right(value, window.bit - shifted);
        shifted = window.bit;
        const u32 half = 1u << (window.width - 1);
        const u32 bits = value[0] & (2 * half - 1);
        const bool negative = bits < half;
        const u32 magnitude = negative ? half - bits : bits - half;
        const u64 place = u64(window.slot) * p.terms + term;
        p.keys[place] = magnitude == 0 ? window.zero_key : window.first_key + magnitude - 1;
        p.values[place] = (window.first_point + point) | (negative != flipped ? NEGATIVE : 0);
    }
}

struct BucketRangesParams {
    // Sorted.
    const u32 *keys;
    // For each bucket, one more than the index of its first entry, and one more than that of its
    // last; the caller has zeroed both, and they stay zero for an empty bucket.
    u32 *first, *last;
    u32 entries, buckets;
};

// Keys of a thread: four loads under way at once, where one would leave the memory idle.
constexpr u32 RANGE_KEYS = 4;

// Where each bucket's run of equal keys lies. Nothing is done for empty buckets, so that the time
// does not depend on how the keys are spread.
// Grid: ceil(entries / 1024) blocks of 256 threads. Reads 4 bytes a key (its neighbours come from
// L1), writes 8 bytes a bucket that is not empty.
CUZK_KERNEL(msm_bucket_ranges_kernel, 256, 1, BucketRangesParams) {
    const u32 first = blockIdx.x * 256 * RANGE_KEYS + threadIdx.x;
    // No key: all are at most `buckets`.
    constexpr u32 NONE = 0xffffffffu;
    u32 before[RANGE_KEYS], key[RANGE_KEYS], after[RANGE_KEYS];
#pragma unroll
    for (u32 e = 0; e < RANGE_KEYS; e++) {
        const u32 i = first + e * 256;
        before[e] = i > 0 && i < p.entries ? p.keys[i - 1] : NONE;
        key[e] = i < p.entries ? p.keys[i] : NONE;
        after[e] = i + 1 < p.entries ? p.keys[i + 1] : NONE;
    }
#pragma unroll
    for (u32 e = 0; e < RANGE_KEYS; e++) {
        const u32 i = first + e * 256;
        if (key[e] >= p.buckets) continue;
        if (before[e] != key[e]) p.first[key[e]] = i + 1;
        if (after[e] != key[e]) p.last[key[e]] = i + 1;
    }
}

struct SelectParams {
    // Bit j of each: aux variable j. `mask` tells which variables the query has a point for (null:
    // all), and ranks[w] how many of them precede word w.
    const u64 *ones, *mask;
    const u32 *ranks;
    u32 *indices;
    // Zeroed by the caller; becomes the number of indices.
    u32 *count;
    u32 words;
    // Point index of the query's first aux variable.
    u32 first_point;
};

// Indices of the points of the variables that are 1: first_point + (rank of j in the mask) for
// every set bit j of ones & mask. Blocks write in any order, each block its indices in ascending
// order: the sum does not depend on it, and no scan over the blocks is needed.
// Grid: ceil(words / 256) blocks of 256 threads. A thread counts one word; a warp then writes its
// 32 words one by one, so that stores are of consecutive indices. Reads 20 bytes a word, writes
// 4 bytes a selected point.
CUZK_KERNEL(msm_select_kernel, 256, 1, SelectParams) {
    __shared__ u32 warp_counts[8];
    __shared__ u32 block_start;
    const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;

    u64 mask = 0, selected = 0;
    u32 rank = 0;
    if (word < p.words) {
        mask = p.mask ? p.mask[word] : ~u64(0);
        selected = p.ones[word] & mask;
        rank = p.mask ? p.ranks[word] : 64 * word;
    }
    const u32 count = __popcll(selected);
    u32 before = count;
    for (u32 step = 1; step < WARP; step *= 2) {
        const u32 other = __shfl_up_sync(FULL_WARP, before, step);
        if (lane >= step) before += other;
    }
    if (lane == WARP - 1) warp_counts[warp] = before;
    before -= count;
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 total = 0;
        for (u32 w = 0; w < 8; w++) {
            const u32 warp_count = warp_counts[w];
            warp_counts[w] = total;
            total += warp_count;
        }
        block_start = total == 0 ? 0 : atomicAdd(p.count, total);
    }
    __syncthreads();

    u32 *out = p.indices + block_start + warp_counts[warp];
    for (u32 owner = 0; owner < WARP; owner++) {
        const u64 bits = __shfl_sync(FULL_WARP, selected, owner);
        if (bits == 0) continue;
        const u64 present = __shfl_sync(FULL_WARP, mask, owner);
        const u32 start = __shfl_sync(FULL_WARP, before, owner);
        const u32 first = p.first_point + __shfl_sync(FULL_WARP, rank, owner);
        for (u32 bit = lane; bit < 64; bit += WARP) {
            if ((bits >> bit & 1) == 0) continue;
            const u64 below = (u64(1) << bit) - 1;
            out[start + __popcll(bits & below)] = first + __popcll(present & below);
        }
    }
}

}  // namespace cuzk
