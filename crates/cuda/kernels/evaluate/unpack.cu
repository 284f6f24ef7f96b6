// A witness's packed bits in the order of the aux variables.
#include "common/kernel.cuh"

namespace cuzk {

struct UnpackParams {
    const u64 *packed;
    const u64 *is_bit;
    const u32 *ranks;
    u64 *ones;
    u32 words;
    u32 packed_words;
};

// ones = the packed bits, in order, at the places where is_bit has ones; 0 elsewhere. ranks[w] is the
// number of ones of is_bit before word w.
//
// A thread makes a word of 64 variables. It takes the 64 bits from its rank on and lays them out
// run by run of is_bit's ones: a word of SHA-256 variables is one run, and there are few runs in any
// word. Reads and writes are coalesced: 28 bytes a word.
CUZK_KERNEL(unpack_bits_kernel, 256, 1, UnpackParams) {
    const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= p.words) return;
    const u32 rank = p.ranks[word], first = rank / 64, shift = rank % 64;
    u64 bits = first < p.packed_words ? p.packed[first] >> shift : 0;
    if (shift > 0 && first + 1 < p.packed_words) bits |= p.packed[first + 1] << (64 - shift);

    u64 mask = p.is_bit[word];
    u64 ones = mask == ~0ull ? bits : 0;
    if (mask == ~0ull) mask = 0;
    while (mask != 0) {
        const u32 start = __ffsll(mask) - 1;
        const u32 length = __ffsll(~(mask >> start)) - 1;  // below 64: the mask is not all ones
        const u64 run = (1ull << length) - 1;
        ones |= (bits & run) << start;
        bits >>= length;
        mask &= ~(run << start);
    }
    p.ones[word] = ones;
}

}  // namespace cuzk
