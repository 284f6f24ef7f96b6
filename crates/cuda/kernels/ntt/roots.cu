// The table of roots of unity that the passes share.

#include "common/kernel.cuh"
#include "field/fr.cuh"
#include "ntt/lazy.cuh"

namespace cuzk {
namespace ntt {

struct ExpandParams {
    const Fr *inner;   // ω^i for i < 2^inner_bits, Montgomery, below r
    const Fr *outer;   // ω^(i 2^inner_bits)
    Factor *table;     // ω^i
    u32 len;
    u32 inner_bits;
};

// table[i] = inner[i mod 2^inner_bits] outer[i / 2^inner_bits], as factors.
//
// Grid: an entry a thread, 256 a block. Runs once when a transform is made; writes 64 bytes an
// entry.
CUZK_KERNEL(ntt_expand_roots, 256, 1, ExpandParams) {
    const u32 i = blockIdx.x * 256 + threadIdx.x;
    if (i >= p.len) return;
    const Fr root = p.inner[i & ((1u << p.inner_bits) - 1)] * p.outer[i >> p.inner_bits];
    p.table[i] = Factor::of(root);
}

}  // namespace ntt
}  // namespace cuzk
