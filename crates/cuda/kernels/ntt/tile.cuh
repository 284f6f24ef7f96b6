// A block's tile: 2^11 elements, which a pass takes through all of its levels.
//
// A pass of r levels transforms the columns of matrices of R = 2^r rows. Sub-transforms of m
// consecutive elements are matrices of R rows and m/R columns, so column c of matrix s has the
// elements s m + row m/R + c. A tile holds 2^(11-r) columns, counted through all matrices.
//
// Within a tile an element has an 11-bit index (upper column bits | r row bits | lower column
// bits). The number of lower column bits is as large as possible: neighbouring threads then have
// neighbouring columns, which are neighbours in memory. Where a matrix has fewer columns than the
// tile (in the last levels) the row bits take their place.
//
// Thread t holds the eight elements whose index is t with three bits, the window, inserted.

#pragma once

#include "ntt/lazy.cuh"

namespace cuzk {
namespace ntt {

constexpr u32 TILE_BITS = 11;
constexpr u32 THREADS = 256;
// Of dynamic shared memory, for the exchange of elements between the windows.
constexpr u32 TILE_BYTES = 32u << TILE_BITS;

struct TileShape {
    u32 elements;      // n, the length of the whole vector
    u32 block_bits;    // log2 m
    u32 levels;        // r
    u32 column_bits;   // number of lower column bits

    // log2 of the columns of a matrix.
    CUZK_FN u32 matrix_column_bits() const { return block_bits - levels; }
};

struct Tile {
    TileShape shape;
    u32 first_column;
    u32 thread;

    CUZK_FN Tile(const TileShape &shape, u32 block, u32 thread)
        : shape(shape), first_column(block << (TILE_BITS - shape.levels)), thread(thread) {}

    // Index of the first of the thread's elements, the one whose window bits are 0.
    CUZK_FN u32 index(u32 window) const {
        return thread >> window << (window + 3) | (thread & ((1u << window) - 1));
    }

    CUZK_FN u32 row(u32 index) const {
        return index >> shape.column_bits & ((1u << shape.levels) - 1);
    }

    // Counted through all matrices.
    CUZK_FN u32 column(u32 index) const {
        const u32 low = index & ((1u << shape.column_bits) - 1);
        const u32 high = index >> (shape.column_bits + shape.levels);
        return first_column + (high << shape.column_bits | low);
    }

    // The row bits below the window: where within the sub-transforms of a stage the thread is.
    CUZK_FN u32 row_below(u32 window) const {
        return (thread & ((1u << window) - 1)) >> shape.column_bits;
    }

    // Position in the vector.
    CUZK_FN u32 position(u32 index) const {
        const u32 columns = shape.matrix_column_bits();
        const u32 c = column(index);
        return (c >> columns << shape.block_bits) + (row(index) << columns) + (c & ((1u << columns) - 1));
    }

    // What is added to the position of the thread's first element for its element u. The window
    // lies within the row bits; a pass of fewer than three levels is the only one of its transform
    // and has positions that are the indices.
    CUZK_FN u32 step(u32 window, u32 u) const {
        return u << (window - shape.column_bits + shape.matrix_column_bits());
    }
};

// Where an element lies in one of the two 16-byte planes of shared memory. Exclusive-or with the
// next three bits: for every window, eight neighbouring threads use all 32 banks.
CUZK_FN u32 exchange_slot(u32 index) { return index ^ (index >> 3 & 7); }

CUZK_FN void put(uint4 *exchange, u32 index, const Lazy &x) {
    const u32 slot = exchange_slot(index);
    exchange[slot] = make_uint4(x.limb[0], x.limb[1], x.limb[2], x.limb[3]);
    exchange[slot + (1u << TILE_BITS)] = make_uint4(x.limb[4], x.limb[5], x.limb[6], x.limb[7]);
}

CUZK_FN Lazy from_halves(const uint4 &low, const uint4 &high) {
    return Lazy{{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}

CUZK_FN Lazy take(const uint4 *exchange, u32 index) {
    const u32 slot = exchange_slot(index);
    return from_halves(exchange[slot], exchange[slot + (1u << TILE_BITS)]);
}

CUZK_FN Lazy load(const Fr *values, u32 position) {
    const uint4 *halves = reinterpret_cast<const uint4 *>(values + position);
    return from_halves(halves[0], halves[1]);
}

CUZK_FN void store(Fr *values, u32 position, const u32 (&limb)[8]) {
    uint4 *halves = reinterpret_cast<uint4 *>(values + position);
    halves[0] = make_uint4(limb[0], limb[1], limb[2], limb[3]);
    halves[1] = make_uint4(limb[4], limb[5], limb[6], limb[7]);
}

CUZK_FN Factor from_quarters(const uint4 &a, const uint4 &b, const uint4 &c, const uint4 &d) {
    return Factor{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}, {c.x, c.y, c.z, c.w, d.x, d.y, d.z, d.w}};
}

CUZK_FN Factor load(const Factor *table, u32 index) {
    const uint4 *quarters = reinterpret_cast<const uint4 *>(table + index);
    return from_quarters(__ldg(quarters), __ldg(quarters + 1), __ldg(quarters + 2), __ldg(quarters + 3));
}

}  // namespace ntt
}  // namespace cuzk
