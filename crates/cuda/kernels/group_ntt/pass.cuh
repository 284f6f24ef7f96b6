// One pass of a transform of points: butterflies of two or four points.
//
// Decimation in time. Before the first pass the points are in bit-reversed order. A pass that joins
// blocks of m points to blocks of 2m or 4m has, for k < m of such a block, the points k + q m, of which
// q is the place of the block of the coefficients s mod 4 (or 2) with s = q's bits reversed. They are
// multiplied by root^(s step (2 k + coset)), for a root of order 2n and step = n / (4 m): then a
// transform of four (two) points gives the values k + o m.

#pragma once

#include "curve/endomorphism.cuh"
#include "curve/normalise.cuh"

namespace cuzk {

constexpr u32 GROUP_NTT_THREADS = 128;

// The multiples 1 ... TABLE_POINTS of a point: digits are -8 ... 7.
constexpr u32 TABLE_POINTS = 8;

// A run of butterflies of a pass.
struct Butterflies {
    u32 first, count;
    // log2 of m, and of the points of a butterfly: 1 or 2.
    u32 log_m, log_radix;

    // Place of point q of butterfly number `first` + i.
    __device__ __forceinline__ u32 place(u32 i, u32 q) const {
        const u32 block = (first + i) >> log_m;
        return (block << (log_m + log_radix)) + (q << log_m) + k(i);
    }

    __device__ __forceinline__ u32 k(u32 i) const { return (first + i) & ((1u << log_m) - 1); }
};

struct PermuteParams {
    const Affine<Fp> *source;
    Affine<Fp> *result;
    u32 bits;  // log2 of the length
};

// result[i with its bits reversed] = source[i].
// Grid: a point a thread, GROUP_NTT_THREADS a block.
__device__ __forceinline__ void permute_points(const PermuteParams &p) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >> p.bits != 0) return;
    p.result[__brev(i) >> 1 >> (31 - p.bits)] = p.source[i];
}

struct TableParams {
    const Affine<Fp> *points;
    // [TABLE_POINTS][len], len = quarters * butterflies.count.
    Affine<Fp> *table;
    // [rows][PARTS<Fp>][threads].
    uint4 *kept;
    Butterflies butterflies;
    // Points first_quarter ... of each butterfly, `len` in all.
    u32 first_quarter, len;
};

// The multiples of the points that are to be multiplied by twiddles, affine: each from the one before by
// an addition, with one inversion a thread for all its points. Infinity has infinity eight times.
// Grid: any number of blocks. Reads a point; reads and writes the table and products once.
__device__ __forceinline__ void multiples_table(const TableParams &p) {
    const Rows rows(p.len);
    if (rows.count == 0) return;
    auto entry = [&](u32 multiple, u32 i) { return p.table + u64(multiple - 1) * p.len + i; };
    // What has to be inverted for `multiple` times a point; 1 for infinity, and for points of small order, which
    // have no place here but must not spoil others.
    auto denominator = [&](u32 multiple, const Affine<Fp> &before, const Affine<Fp> &point) {
        const Fp value = multiple == 2 ? point.y.doubled() : before.x - point.x;
        return value.is_zero() ? Fp::one() : value;
    };

#pragma unroll 1
    for (u32 row = 0; row < rows.count; row++) {
        const u32 i = rows.index(row);
        const u32 q = p.first_quarter + i / p.butterflies.count;
        *entry(1, i) = p.points[p.butterflies.place(i % p.butterflies.count, q)];
    }
#pragma unroll 1
    for (u32 multiple = 2; multiple <= TABLE_POINTS; multiple++) {
        Fp product = Fp::one();
#pragma unroll 1
        for (u32 row = 0; row < rows.count; row++) {
            const u32 i = rows.index(row);
            store_parts(rows.kept<Fp>(p.kept, 0, row), rows.threads, product);
            product *= denominator(multiple, *entry(multiple - 1, i), *entry(1, i));
        }
        Fp inverted = inverse_call(product);
#pragma unroll 1
        for (u32 row = rows.count; row-- > 0;) {
            const u32 i = rows.index(row);
            const Affine<Fp> point = *entry(1, i), before = *entry(multiple - 1, i);
            const Fp over = inverted * load_parts<Fp>(rows.kept<Fp>(p.kept, 0, row), rows.threads);
            inverted *= denominator(multiple, before, point);
            if (point.is_infinity()) {
                *entry(multiple, i) = point;
                continue;
            }
            Fp numerator = before.y - point.y;
            if (multiple == 2) {
                numerator = point.x.squared();
                numerator = numerator.doubled() + numerator;
            }
            const Fp lambda = numerator * over;
            const Fp x = lambda.squared() - before.x - point.x;
            *entry(multiple, i) = {x, lambda * (point.x - x) - point.y};
        }
    }
}

struct TwiddleParams {
    Affine<Fp> *points;
    // Of `multiples_table` for the same points.
    const Affine<Fp> *table;
    // [3][rows][PARTS<Fp>][threads].
    uint4 *kept;
    // Powers of the root: low[i] = root^i, high[i] = root^(i << low_bits); Montgomery.
    const Fr *low, *high;
    Butterflies butterflies;
    u32 first_quarter, len;
    u32 low_bits, step, coset;
    // Other than 0: every twiddle is multiplied by `scale`, Montgomery.
    u32 scaled;
    u32 scale[Fr::N];
};

// The twiddle of point q of butterfly number i of the run, canonical.
__device__ __forceinline__ Fr twiddle(const TwiddleParams &p, u32 i, u32 q) {
    const u32 s = p.butterflies.log_radix == 1 ? q : (q & 1) << 1 | q >> 1;
    const u32 exponent = s * p.step * (2 * p.butterflies.k(i) + p.coset);
    Fr power = p.low[exponent & ((1u << p.low_bits) - 1)] * p.high[exponent >> p.low_bits];
    if (p.scaled != 0) {
        Fr scale;
#pragma unroll
        for (int l = 0; l < Fr::N; l++) scale.limb[l] = p.scale[l];
        power *= scale;
    }
    return power.to_canonical();
}

// value += 8 (1 + 16 + ... + 16^31): then a nibble less 8 is a digit, and what is carried out is one more.
__device__ __forceinline__ bool shift_nibbles(u32 (&value)[4]) {
    Carry carry;
    value[0] = add_cc(value[0], 0x88888888u, carry);
    value[1] = addc_cc(value[1], 0x88888888u, carry);
    value[2] = addc_cc(value[2], 0x88888888u, carry);
    value[3] = addc_cc(value[3], 0x88888888u, carry);
    return addc(0, 0, carry) != 0;
}

__device__ __forceinline__ u32 take_nibble(u32 (&value)[4]) {
    const u32 nibble = value[3] >> 28;
#pragma unroll
    for (int i = 3; i > 0; i--) value[i] = __funnelshift_l(value[i - 1], value[i], 4);
    value[0] <<= 4;
    return nibble;
}

// points[..] *= twiddle: 128 doublings, and 62 additions of affine multiples on average, since the
// twiddle is k + k' lambda with 32 digits each and lambda times a multiple costs one product.
// Grid: any number of blocks. Reads the table's points one by one; reads and writes the points, and products.
__device__ __forceinline__ void multiply_by_twiddles(const TwiddleParams &p) {
    const Rows rows(p.len);
    auto place = [&](u32 i) {
        const u32 q = p.first_quarter + i / p.butterflies.count;
        return p.points + p.butterflies.place(i % p.butterflies.count, q);
    };
    auto value = [&](u32 i) {
        const Fr scalar = twiddle(p, i % p.butterflies.count, p.first_quarter + i / p.butterflies.count);
        u32 low[4], high[4];
        split_by_lambda(scalar, low, high);
        auto sum = Jacobian<Fp>::infinity();
        auto add = [&](u32 nibble, bool of_lambda) {
            if (nibble == 8) return;
            const u32 magnitude = nibble < 8 ? 8 - nibble : nibble - 8;
            Affine<Fp> term = p.table[u64(magnitude - 1) * p.len + i];
            if (nibble < 8) term.y = -term.y;
            if (of_lambda) term.x = product_call(term.x, beta());
            sum.add(term);
        };
        const bool carries[2] = {shift_nibbles(low), shift_nibbles(high)};
#pragma unroll 1
        for (int digit = 32; digit >= 0; digit--) {
            if (digit < 32) {
#pragma unroll 1
                for (int step = 0; step < 4; step++) sum.double_in_place();
            }
            const bool top = digit == 32;
            const u32 of_one = top ? 8 + u32(carries[0]) : take_nibble(low);
            const u32 of_lambda = top ? 8 + u32(carries[1]) : take_nibble(high);
#pragma unroll 1
            for (int half = 0; half < 2; half++) add(half == 0 ? of_one : of_lambda, half == 1);
        }
        return sum.to_xyzz();
    };
    normalise<Fp>(rows, p.kept, value, place);
}

struct RotateParams {
    const Affine<Fp> *points;
    // butterflies.count points.
    Affine<Fp> *rotated;
    uint4 *kept;
    Butterflies butterflies;
    // Whether the fourth root of unity is -|X|^3, not |X|^3.
    u32 negative;
};

// rotated = i (a_1 - a_3) of each butterfly of four, where the fourth root of unity i is |X|^3 or its
// opposite: (X^3)^2 = X^6 = (lambda + 1)^3 = -1.
// Grid: any number of blocks.
__device__ __forceinline__ void rotate_differences(const RotateParams &p) {
    const Rows rows(p.butterflies.count);
    auto place = [&](u32 i) { return p.rotated + i; };
    auto value = [&](u32 i) {
        auto difference = Jacobian<Fp>::from_affine(p.points[p.butterflies.place(i, 2)]);
        difference.add(-p.points[p.butterflies.place(i, 3)]);
        Jacobian<Fp> rotated = times_parameter(times_parameter_squared(difference));
        if (p.negative != 0) rotated.y = -rotated.y;
        return rotated.to_xyzz();
    };
    normalise<Fp>(rows, p.kept, value, place);
}

struct CombineParams {
    const Affine<Fp> *points;
    const Affine<Fp> *rotated;
    Affine<Fp> *result;
    uint4 *kept;
    Butterflies butterflies;
};

// The butterflies' values, from points that have been multiplied: of four a_0, a_2, a_1, a_3 in places 0 ... 3
//   a_0 + a_2 + a_1 + a_3,  a_0 - a_2 + i (a_1 - a_3),  a_0 + a_2 - a_1 - a_3,  a_0 - a_2 - i (a_1 - a_3).
// Grid: any number of blocks. Reads four points for a value, writes it.
__device__ __forceinline__ void combine_points(const CombineParams &p) {
    const Rows rows(p.butterflies.count << p.butterflies.log_radix);
    auto place = [&](u32 i) {
        return p.result + p.butterflies.place(i % p.butterflies.count, i / p.butterflies.count);
    };
    auto value = [&](u32 i) {
        const u32 butterfly = i % p.butterflies.count, output = i / p.butterflies.count;
        auto sum = Jacobian<Fp>::from_affine(p.points[p.butterflies.place(butterfly, 0)]);
        const bool two = p.butterflies.log_radix == 1, odd = (output & 1) != 0, upper = output >= 2;
        const u32 terms = two ? 1 : odd ? 2 : 3;
#pragma unroll 1
        for (u32 t = 0; t < terms; t++) {
            Affine<Fp> term;
            if (odd && t == 1) {
                term = p.rotated[butterfly];
            } else {
                term = p.points[p.butterflies.place(butterfly, t + 1)];
            }
            if (t == 0 ? odd : upper) term = -term;
            sum.add(term);
        }
        return sum.to_xyzz();
    };
    normalise<Fp>(rows, p.kept, value, place);
}

}  // namespace cuzk
