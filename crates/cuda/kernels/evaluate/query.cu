// The terms of a query whose values are field elements.
#include "evaluate/program.cuh"

namespace cuzk {

struct QueryTailParams {
    const Fr *values;
    const u32 *inputs;       // the inputs that have a point: indices of values
    const u64 *present;      // aux variables that have a point; null: all
    const u32 *present_ranks;
    const u64 *is_bit;
    const u32 *is_bit_ranks;
    const u32 *tail_ranks;   // terms of aux variables before each word
    u32 *scalars;            // 8 words a term; null: not wanted
    u32 *points;             // a word a term; null: not wanted
    u32 input_terms;
    u32 input_blocks;
    u32 aux;                 // number of aux variables
    u32 first_dense;         // value of the first aux variable that is no bit
};

__device__ __forceinline__ void write_scalar(u32 *scalars, u32 term, const Fr &value) {
    const Fr canonical = value.to_canonical();
    const u32 *w = canonical.limb;
    uint4 *out = reinterpret_cast<uint4 *>(scalars) + 2 * size_t(term);
    out[0] = make_uint4(w[0], w[1], w[2], w[3]);
    out[1] = make_uint4(w[4], w[5], w[6], w[7]);
}

__device__ __forceinline__ u64 shuffle_word(u64 word, u32 lane) {
    const u32 low = __shfl_sync(FULL_WARP, u32(word), lane);
    const u32 high = __shfl_sync(FULL_WARP, u32(word >> 32), lane);
    return u64(high) << 32 | low;
}

// scalars[t], points[t] = canonical value and point index of the t-th term of a query that is no
// bit: the inputs that have a point, then the aux variables that have one and are no bits.
//
// Blocks of 256 threads. The first `input_blocks` take a term of an input per thread. In the
// others a warp takes 32 words of the bitmaps: each lane reads one, then the warp goes through
// the words that have terms, a lane for every second variable, so that a word's scalars are written
// side by side. Traffic: 28 to 40 bytes a word, and 32 read and 36 written a term.
CUZK_KERNEL(query_tail_kernel, 256, 4, QueryTailParams) {
    if (blockIdx.x < p.input_blocks) {
        const u32 term = blockIdx.x * blockDim.x + threadIdx.x;
        if (term >= p.input_terms) return;
        if (p.scalars) write_scalar(p.scalars, term, load_fr(p.values + p.inputs[term]));
        if (p.points) p.points[term] = term;
        return;
    }
    const u32 lane = threadIdx.x % WARP;
    const u32 word = (blockIdx.x - p.input_blocks) * blockDim.x + threadIdx.x;
    const u32 words = (p.aux + 63) / 64;
    u64 present = 0, is_bit = 0;
    u32 present_rank = 0, is_bit_rank = 0, tail_rank = 0;
    if (word < words) {
        const u32 left = p.aux - 64 * word;
        present = p.present ? p.present[word] : left < 64 ? (1ull << left) - 1 : ~0ull;
        present_rank = p.present ? p.present_ranks[word] : 64 * word;
        is_bit = p.is_bit[word];
        is_bit_rank = p.is_bit_ranks[word];
        tail_rank = p.tail_ranks[word];
    }
    u32 busy = __ballot_sync(FULL_WARP, (present & ~is_bit) != 0);
    while (busy != 0) {
        const u32 owner = __ffs(busy) - 1;
        busy &= busy - 1;
        const u64 its_present = shuffle_word(present, owner), its_bits = shuffle_word(is_bit, owner);
        const u32 first_point = p.input_terms + __shfl_sync(FULL_WARP, present_rank, owner);
        const u32 first_term = p.input_terms + __shfl_sync(FULL_WARP, tail_rank, owner);
        const u32 its_aux = 64 * (word - lane + owner);
        const u32 first_value = p.first_dense + its_aux - __shfl_sync(FULL_WARP, is_bit_rank, owner);
        const u64 tail = its_present & ~its_bits;
#pragma unroll
        for (u32 place = lane; place < 64; place += WARP) {
            if ((tail >> place & 1) == 0) continue;
            const u64 below = (1ull << place) - 1;
            const u32 term = first_term + __popcll(tail & below);
            if (p.scalars) {
                const u32 value = first_value + place - __popcll(its_bits & below);
                write_scalar(p.scalars, term, load_fr(p.values + value));
            }
            if (p.points) p.points[term] = first_point + __popcll(its_present & below);
        }
    }
}

}  // namespace cuzk
