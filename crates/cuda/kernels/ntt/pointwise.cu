// The steps between the transforms of a quotient.

#include "common/kernel.cuh"
#include "field/fr.cuh"
#include "ntt/tile.cuh"

namespace cuzk {
namespace ntt {

struct MultiplyParams {
    const Fr *x;
    const Fr *y;
    Fr *product;
    u32 len;
};

// product[i] = x[i] y[i] / R: Montgomery if both are, canonical if one is. x and y below r;
// product may be x or y.
//
// Grid: an element a thread, 256 a block. Reads 64 and writes 32 bytes an element.
CUZK_KERNEL(ntt_multiply, 256, 1, MultiplyParams) {
    const u32 i = blockIdx.x * 256 + threadIdx.x;
    if (i >= p.len) return;
    const Fr x = load(p.x, i).reduced(), y = load(p.y, i).reduced();
    store(p.product, i, (x * y).limb);
}

struct DifferenceParams {
    const Fr *x;
    const Fr *y;
    Fr *difference;
    u32 bits;  // log2 of the length
};

// log2 of the side of a square tile.
constexpr u32 SIDE_BITS = 5;
constexpr u32 SIDE = 1u << SIDE_BITS;

CUZK_FN u32 reversed(u32 i, u32 bits) { return __brev(i) >> 1 >> (31 - bits); }

// difference[rev(i)] = x[i] - y[i], where rev reverses the bits of an index; for vectors of 2^10
// elements and more. x, y and the result below r, in one form.
//
// An index is (high, middle, low) with high and low of five bits; rev makes (rev low, rev middle,
// rev high) of it. For one middle the elements form a square that is read along low and written along
// high, through shared memory: 1 KiB at a time on both sides.
//
// Grid: a square a block of 256 threads; 33 KiB of shared memory, rows padded by one element so
// that columns meet no bank twice. Reads 64 and writes 32 bytes an element.
CUZK_KERNEL(ntt_difference_reversed, 256, 1, DifferenceParams) {
    __shared__ uint4 square[2][SIDE][SIDE + 1];
    const u32 middle_bits = p.bits - 2 * SIDE_BITS;
    const u32 column = threadIdx.x % SIDE;
    for (u32 row = threadIdx.x / SIDE; row < SIDE; row += 256 / SIDE) {
        const u32 i = (row << middle_bits | blockIdx.x) << SIDE_BITS | column;
        const Fr x = load(p.x, i).reduced(), y = load(p.y, i).reduced();
        const Fr d = x - y;
        square[0][row][column] = make_uint4(d.limb[0], d.limb[1], d.limb[2], d.limb[3]);
        square[1][row][column] = make_uint4(d.limb[4], d.limb[5], d.limb[6], d.limb[7]);
    }
    __syncthreads();
    const u32 middle = reversed(blockIdx.x, middle_bits);
    for (u32 row = threadIdx.x / SIDE; row < SIDE; row += 256 / SIDE) {
        const u32 from_row = reversed(column, SIDE_BITS), from_column = reversed(row, SIDE_BITS);
        const Lazy d = from_halves(square[0][from_row][from_column], square[1][from_row][from_column]);
        store(p.difference, (row << middle_bits | middle) << SIDE_BITS | column, d.limb);
    }
}

// The same for vectors of fewer than 2^10 elements, or any: an element a thread, 256 a block.
CUZK_KERNEL(ntt_difference_reversed_small, 256, 1, DifferenceParams) {
    const u32 i = blockIdx.x * 256 + threadIdx.x;
    if (i >> p.bits != 0) return;
    const Fr x = load(p.x, i).reduced(), y = load(p.y, i).reduced();
    store(p.difference, reversed(i, p.bits), (x - y).limb);
}

}  // namespace ntt
}  // namespace cuzk
