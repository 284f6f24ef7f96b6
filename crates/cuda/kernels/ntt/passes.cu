// The passes of a number-theoretic transform over Fr.
//
// A transform of n elements is cut into passes of at most nine levels. The first of those that go
// from natural to bit-reversed order regards the vector as a matrix of R rows, transforms each
// column (R elements, n/R apart), multiplies row k of column c by ω_n^(ck) and leaves n/R columns
// of each row to the next pass, as a sub-transform of their own; row k is left in the place that k
// has in bit-reversed order. Passes from bit-reversed to natural order do the same backwards.
//
// On the coset g⟨ω⟩ with g² = ω, coefficient i is to be multiplied by g^i. In the pass whose
// sub-transforms have m elements the rows are the digit k of i with the weight n/m, so the
// factor is ω_2m^k, and that of the matrix becomes ω_2m^((2c+1)k): cosets cost nothing but in the
// last pass, which has no other factors.
//
// The field's work is about 3.6 products with a factor and 9 butterflies an element and pass,
// against 64 bytes of device memory: on an H200 arithmetic is what bounds a pass.

#include "common/kernel.cuh"
#include "field/fr.cuh"
#include "ntt/dft.cuh"
#include "ntt/lazy.cuh"
#include "ntt/tile.cuh"

namespace cuzk {
namespace ntt {

// log2 of the table of roots that the levels within a tile take their factors from.
constexpr u32 LEVEL_ROOT_BITS = 9;

struct PassParams {
    EighthRoots eighth;
    Fr *values;
    const Factor *level_roots;   // ω_512^i, i < 512
    const Factor *coarse_roots;  // ω_2n^(i 2^fine_bits)
    const Factor *fine_roots;    // scale ω_2n^i, i < 2^fine_bits
    TileShape shape;
    u32 tiles_partial;  // whether the vector is smaller than a tile
    u32 direction;      // 1 or -1: exponents are multiplied by it
    // The factor of column c and row k is ω_2n^(direction (2c + coset) k 2^weight_bits).
    u32 coset;
    u32 weight_bits;
    u32 fine_bits;
    u32 order_mask;     // 2n - 1
    u32 has_twiddles;
    u32 has_fine;       // whether exponents have a part below 2^fine_bits, or there is a scale
    u32 reduces;        // whether results are to be below r
};

// Multiplies each of the thread's elements by its power of ω_2n; their rows are the digits k in
// bit-reversed order. Once for each element, so nothing is gained by sharing between threads.
CUZK_FN void multiply_twiddles(const PassParams &p, const Tile &tile, u32 window, Lazy (&x)[8]) {
    const u32 index = tile.index(window);
    const u32 column = tile.column(index) & ((1u << p.shape.matrix_column_bits()) - 1);
    const u32 base = ((2 * column + p.coset) << p.weight_bits) * p.direction;
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        const u32 row = tile.row(index | u << window);
        // Twice, as a shift by 32 would be none.
        const u32 digit = __brev(row) >> 1 >> (31 - p.shape.levels);
        const u32 exponent = base * digit & p.order_mask;
        x[u] = x[u] * load(p.coarse_roots, exponent >> p.fine_bits);
        if (p.has_fine) x[u] = x[u] * load(p.fine_roots, exponent & ((1u << p.fine_bits) - 1));
    }
}

// Multiplies by the factors between two stages of a tile: element with digit k by ω_M^(lk), where
// M = 2^block_bits and l is the thread's place below the window. The digit of register u stands in
// bit-reversed order in the lowest `levels` bits of u.
CUZK_FN void multiply_level_roots(const PassParams &p, const Tile &tile, u32 window, u32 levels,
                                  u32 block_bits, Lazy (&x)[8]) {
    const u32 base = (tile.row_below(window) << (LEVEL_ROOT_BITS - block_bits)) * p.direction;
#pragma unroll
    for (u32 u = 1; u < 8; u++) {
        const u32 digit = reverse3(u) >> (3 - levels);
        if (digit == 0) continue;
        x[u] = x[u] * load(p.level_roots, base * digit & ((1u << LEVEL_ROOT_BITS) - 1));
    }
}

CUZK_FN void load_all(const PassParams &p, const Tile &tile, u32 window, Lazy (&x)[8]) {
    const u32 index = tile.index(window);
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        const u32 position = tile.position(index | u << window);
        if (p.tiles_partial && position >= p.shape.elements) {
            x[u] = Lazy{{0, 0, 0, 0, 0, 0, 0, 0}};
        } else {
            x[u] = load(p.values, position);
        }
    }
}

CUZK_FN void store_all(const PassParams &p, const Tile &tile, u32 window, const Lazy (&x)[8]) {
    const u32 index = tile.index(window);
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        const u32 position = tile.position(index | u << window);
        if (p.tiles_partial && position >= p.shape.elements) continue;
        if (p.reduces) {
            store(p.values, position, x[u].reduced().limb);
        } else {
            store(p.values, position, x[u].limb);
        }
    }
}

CUZK_FN void exchange_windows(const Tile &tile, uint4 *exchange, u32 from, u32 to, Lazy (&x)[8]) {
    const u32 written = tile.index(from);
#pragma unroll
    for (u32 u = 0; u < 8; u++) put(exchange, written | u << from, x[u]);
    __syncthreads();
    // No barrier afterwards: the next writes go where this thread has just read.
    const u32 read = tile.index(to);
#pragma unroll
    for (u32 u = 0; u < 8; u++) x[u] = take(exchange, read | u << to);
}

// One pass from natural to bit-reversed order, in place: the R rows of each column are transformed
// in up to three stages of at most three levels, the highest row bits first; between stages the
// elements change threads through shared memory.
//
// Values: Montgomery, below 2 r; below r at the end if `reduces`.
// Grid: a tile of 2^11 elements a block of 256 threads, eight elements a thread. 64 registers hold
// them; two blocks fit on a multiprocessor with 128 registers a thread and 64 KiB of shared
// memory a block. Reads and writes 32 bytes an element, in runs of at least 128 bytes, and the
// factors: 64 bytes an element from tables that stay in the caches.
CUZK_KERNEL(ntt_pass_natural_to_reversed, THREADS, 2, PassParams) {
    CUZK_DYNAMIC_SHARED(uint4, exchange);
    const Tile tile(p.shape, blockIdx.x, threadIdx.x);
    u32 left = p.shape.levels;
    u32 levels = left < 3 ? left : 3;
    u32 window = p.shape.column_bits + left - levels;
    Lazy x[8];
    load_all(p, tile, window, x);
    while (true) {
        dft_natural_to_reversed(x, levels, p.eighth);
        if (left == levels) break;
        multiply_level_roots(p, tile, window, levels, left, x);
        left -= levels;
        levels = left < 3 ? left : 3;
        const u32 next = p.shape.column_bits + left - levels;
        exchange_windows(tile, exchange, window, next, x);
        window = next;
    }
    if (p.has_twiddles) multiply_twiddles(p, tile, window, x);
    store_all(p, tile, window, x);
}

// One pass from bit-reversed to natural order: the transpose of the above, step by step backwards.
// The same bounds, grid and traffic.
CUZK_KERNEL(ntt_pass_reversed_to_natural, THREADS, 2, PassParams) {
    CUZK_DYNAMIC_SHARED(uint4, exchange);
    const Tile tile(p.shape, blockIdx.x, threadIdx.x);
    u32 window = p.shape.column_bits;
    u32 levels = p.shape.levels % 3;
    if (levels == 0 && p.shape.levels > 0) levels = 3;
    u32 done = levels;
    Lazy x[8];
    load_all(p, tile, window, x);
    if (p.has_twiddles) multiply_twiddles(p, tile, window, x);
    while (true) {
        dft_reversed_to_natural(x, levels, p.eighth);
        if (done == p.shape.levels) break;
        const u32 next = window + levels;
        exchange_windows(tile, exchange, window, next, x);
        window = next;
        levels = 3;
        done += levels;
        multiply_level_roots(p, tile, window, levels, done, x);
    }
    store_all(p, tile, window, x);
}

}  // namespace ntt
}  // namespace cuzk
