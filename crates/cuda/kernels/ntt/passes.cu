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
    Multiples multiples;
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

// Calls step(u, factor) for the powers of ω_2n that the thread's elements are multiplied by; the
// window lies at the lowest row bits, and rows are the digits k in bit-reversed order. Once for each
// element, so nothing is gained by sharing between threads.
struct Twiddles {
    u32 base;
    u32 first_digit;

    CUZK_FN Twiddles(const PassParams &p, const Tile &tile, u32 window) {
        const u32 index = tile.index(window);
        const u32 column = tile.column(index) & ((1u << p.shape.matrix_column_bits()) - 1);
        base = ((2 * column + p.coset) << p.weight_bits) * p.direction;
        // Twice, as a shift by 32 would be none.
        first_digit = __brev(tile.row(index)) >> 1 >> (31 - p.shape.levels);
    }

    CUZK_FN Sum multiply(const PassParams &p, u32 u, const Lazy &x) const {
        const u32 digit = first_digit + (reverse3(u) << p.shape.levels >> 3);
        const u32 exponent = base * digit & p.order_mask;
        Lazy y = x;
        if (p.has_fine) y = y * load(p.fine_roots, exponent & ((1u << p.fine_bits) - 1));
        return ntt::multiply(y, load(p.coarse_roots, exponent >> p.fine_bits));
    }
};

// The factors between two stages of a tile: element with digit k times ω_M^(lk), where
// M = 2^block_bits and l is the thread's place below the window. The digit of register u stands in
// bit-reversed order in the lowest `levels` bits of u.
struct LevelRoots {
    u32 base;

    CUZK_FN LevelRoots(const PassParams &p, const Tile &tile, u32 window, u32 block_bits)
        : base((tile.row_below(window) << (LEVEL_ROOT_BITS - block_bits)) * p.direction) {}

    CUZK_FN Factor factor(const PassParams &p, u32 digit) const {
        return load(p.level_roots, base * digit & ((1u << LEVEL_ROOT_BITS) - 1));
    }
};

CUZK_FN Lazy load_element(const PassParams &p, u32 position) {
    if (p.tiles_partial && position >= p.shape.elements) return Lazy{{0, 0, 0, 0, 0, 0, 0, 0}};
    return load(p.values, position);
}

CUZK_FN void store_element(const PassParams &p, u32 position, const Lazy &x) {
    if (p.tiles_partial && position >= p.shape.elements) return;
    if (p.reduces) {
        store(p.values, position, x.reduced().limb);
    } else {
        store(p.values, position, x.limb);
    }
}

// One pass from natural to bit-reversed order, in place: the R rows of each column are transformed
// in up to three stages of at most three levels, the highest row bits first; between stages the
// elements change threads through shared memory.
//
// Values: Montgomery, any representatives below 2^256; below r at the end if `reduces`.
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
    Sum x[8];
    u32 position = tile.position(tile.index(window));
#pragma unroll
    for (u32 u = 0; u < 8; u++) x[u] = Sum::of(load_element(p, position + tile.step(window, u)));
    while (true) {
        dft_natural_to_reversed(x, levels, p.eighth, p.multiples);
        if (left == levels) break;
        const LevelRoots roots(p, tile, window, left);
        const u32 written = tile.index(window);
#pragma unroll
        for (u32 u = 0; u < 8; u++) {
            Lazy y = x[u].settled(p.multiples);
            const u32 digit = reverse3(u) >> (3 - levels);
            if (digit != 0) y = y * roots.factor(p, digit);
            put(exchange, written | u << window, y);
        }
        __syncthreads();
        left -= levels;
        levels = left < 3 ? left : 3;
        window = p.shape.column_bits + left - levels;
        // No barrier afterwards: the next writes go where this thread has just read.
        const u32 read = tile.index(window);
#pragma unroll
        for (u32 u = 0; u < 8; u++) x[u] = Sum::of(take(exchange, read | u << window));
    }
    const Twiddles twiddles(p, tile, window);
    position = tile.position(tile.index(window));
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        Lazy y = x[u].settled(p.multiples);
        if (p.has_twiddles) y = below_2_256(twiddles.multiply(p, u, y));
        store_element(p, position + tile.step(window, u), y);
    }
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
    Sum x[8];
    const Twiddles twiddles(p, tile, window);
    u32 position = tile.position(tile.index(window));
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        const Lazy loaded = load_element(p, position + tile.step(window, u));
        x[u] = p.has_twiddles ? twiddles.multiply(p, u, loaded) : Sum::of(loaded);
    }
    while (true) {
        dft_reversed_to_natural(x, levels, p.eighth, p.multiples);
        if (done == p.shape.levels) break;
        const u32 written = tile.index(window);
#pragma unroll
        for (u32 u = 0; u < 8; u++) put(exchange, written | u << window, x[u].settled(p.multiples));
        __syncthreads();
        window += levels;
        levels = 3;
        done += levels;
        const LevelRoots roots(p, tile, window, done);
        // No barrier afterwards: the next writes go where this thread has just read.
        const u32 read = tile.index(window);
        x[0] = Sum::of(take(exchange, read));
#pragma unroll
        for (u32 u = 1; u < 8; u++) {
            x[u] = multiply(take(exchange, read | u << window), roots.factor(p, reverse3(u)));
        }
    }
    position = tile.position(tile.index(window));
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        store_element(p, position + tile.step(window, u), x[u].settled(p.multiples));
    }
}

}  // namespace ntt
}  // namespace cuzk
