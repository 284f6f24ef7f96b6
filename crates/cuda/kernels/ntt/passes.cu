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

// Roots for the stages within a tile, in the direction of the transform. For each block size
// M = 16, 32, ..., 512 the factors ω_M^(lk) of digit k < 8 and place l < M/8, in four planes of
// quarters of 16 bytes: 64 places a digit and eight digits a plane, so that neighbouring places
// are neighbours in memory and all offsets but l's are constants.
constexpr u32 LEVEL_PLACES = 64;
constexpr u32 LEVEL_PLANE = 8 * LEVEL_PLACES;
constexpr u32 LEVEL_BITS_MIN = 4;

struct PassParams {
    EighthRoots eighth;
    Fr *values;
    Multiples multiples;
    const uint4 *level_roots;
    const Factor *coarse_roots;  // ω_2n^(i 2^fine_bits)
    const Factor *fine_roots;    // scale ω_2n^i, i < 2^fine_bits
    TileShape shape;
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

// The powers of ω_2n that the thread's elements are multiplied by; the window lies at the lowest
// row bits, and rows are the digits k in bit-reversed order. Each element has one of its own.
struct Twiddles {
    u32 base;
    u32 first_exponent;

    CUZK_FN Twiddles(const PassParams &p, const Tile &tile, u32 window) {
        const u32 index = tile.index(window);
        const u32 column = tile.column(index) & ((1u << p.shape.matrix_column_bits()) - 1);
        base = ((2 * column + p.coset) << p.weight_bits) * p.direction;
        // Twice, as a shift by 32 would be none.
        first_exponent = base * (__brev(tile.row(index)) >> 1 >> (31 - p.shape.levels));
    }

    CUZK_FN u32 exponent(const PassParams &p, u32 u) const {
        const u32 digit = reverse3(u) << p.shape.levels >> 3;
        return (first_exponent + base * digit) & p.order_mask;
    }

    // The part that the coarse table has, which is all of it where `has_fine` is not set.
    CUZK_FN Factor coarse(const PassParams &p, u32 u) const {
        return load(p.coarse_roots, exponent(p, u) >> p.fine_bits);
    }

    CUZK_FN Factor fine(const PassParams &p, u32 u) const {
        return load(p.fine_roots, exponent(p, u) & ((1u << p.fine_bits) - 1));
    }
};

// The factors between two stages of a tile: element with digit k times ω_M^(lk), where
// M = 2^block_bits and l is the thread's place below the window. The stages beside which they
// stand have three levels; the digit of register u is u in bit-reversed order.
struct LevelRoots {
    const uint4 *first;

    CUZK_FN LevelRoots(const PassParams &p, const Tile &tile, u32 window, u32 block_bits)
        : first(p.level_roots + (block_bits - LEVEL_BITS_MIN) * (4 * LEVEL_PLANE) +
                tile.row_below(window)) {}

    CUZK_FN Factor factor(u32 u) const {
        const uint4 *quarters = first + reverse3(u) * LEVEL_PLACES;
        return from_quarters(__ldg(quarters), __ldg(quarters + LEVEL_PLANE),
                             __ldg(quarters + 2 * LEVEL_PLANE), __ldg(quarters + 3 * LEVEL_PLANE));
    }
};

// The thread's elements; zero where a tile reaches past the end of the vector.
CUZK_FN void load_elements(const PassParams &p, const Tile &tile, u32 window, Lazy (&x)[8]) {
    const u32 position = tile.position(tile.index(window));
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        const u32 at = position + tile.step(window, u);
        x[u] = Lazy{{0, 0, 0, 0, 0, 0, 0, 0}};
        if (at < p.shape.elements) x[u] = load(p.values, at);
    }
}

CUZK_FN void store_elements(const PassParams &p, const Tile &tile, u32 window, const Lazy (&x)[8]) {
    const u32 position = tile.position(tile.index(window));
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        const u32 at = position + tile.step(window, u);
        if (at < p.shape.elements) store(p.values, at, x[u].limb);
    }
}

CUZK_FN void reduce_all(Lazy (&x)[8]) {
#pragma unroll
    for (u32 u = 0; u < 8; u++) x[u] = Lazy::of(x[u].reduced());
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
    Lazy y[8];
    load_elements(p, tile, window, y);
#pragma unroll
    for (u32 u = 0; u < 8; u++) x[u] = Sum::of(y[u]);
    while (true) {
        dft_natural_to_reversed(x, levels, p.eighth, p.multiples);
        if (left == levels) break;
        const LevelRoots roots(p, tile, window, left);
        const u32 written = tile.index(window);
#pragma unroll
        for (u32 u = 0; u < 8; u++) {
            Lazy settled = x[u].settled(p.multiples);
            if (u != 0) settled = settled * roots.factor(u);
            put(exchange, written | u << window, settled);
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
#pragma unroll
    for (u32 u = 0; u < 8; u++) y[u] = x[u].settled(p.multiples);
    if (p.has_twiddles) {
        const Twiddles twiddles(p, tile, window);
        if (p.has_fine) {
#pragma unroll
            for (u32 u = 0; u < 8; u++) y[u] = y[u] * twiddles.fine(p, u);
        }
#pragma unroll
        for (u32 u = 0; u < 8; u++) y[u] = y[u] * twiddles.coarse(p, u);
    }
    if (p.reduces) reduce_all(y);
    store_elements(p, tile, window, y);
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
    Lazy y[8];
    load_elements(p, tile, window, y);
    if (p.has_twiddles) {
        const Twiddles twiddles(p, tile, window);
        if (p.has_fine) {
#pragma unroll
            for (u32 u = 0; u < 8; u++) y[u] = y[u] * twiddles.fine(p, u);
        }
#pragma unroll
        for (u32 u = 0; u < 8; u++) x[u] = multiply(y[u], twiddles.coarse(p, u));
    } else {
#pragma unroll
        for (u32 u = 0; u < 8; u++) x[u] = Sum::of(y[u]);
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
            x[u] = multiply(take(exchange, read | u << window), roots.factor(u));
        }
    }
#pragma unroll
    for (u32 u = 0; u < 8; u++) y[u] = x[u].settled(p.multiples);
    if (p.reduces) reduce_all(y);
    store_elements(p, tile, window, y);
}

}  // namespace ntt
}  // namespace cuzk
