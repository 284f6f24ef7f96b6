// Batch-affine addition of pairs of points.
//
// An affine addition needs 1/(x2 - x1): lambda = (y2 - y1)/(x2 - x1), x3 = lambda^2 - x1 - x2,
// y3 = lambda (x1 - x3) - y1. With Montgomery's trick a thread inverts the denominators of all its
// pairs of a chunk at the price of one inversion and 3 products a pair: 5 M + 1 S an addition,
// against 8 M + 2 S of the mixed addition in XYZZ coordinates.
//
// First pass: read both x, write the product of the denominators before this pair, multiply. Then
// one inversion. Second pass, backwards: read both points and the product, finish. While a pair is
// worked on, the next one's operands are on their way to shared memory (cp.async), and the
// indices of the one after that to registers: the threads of a multiprocessor are too few to
// hide the latency of a gather in any other way.
//
// Pairs with equal x (doublings, cancellations) or a point whose x is 0 (infinity above all) put 1
// into the product and are noted down; when the chunk is done they are added by a slower, complete
// routine with an inversion of its own for all of them. Random pairs pay three comparisons of
// single limbs for that.

#pragma once

#include "curve/affine.cuh"
#include "field/calls.cuh"
#include "msm/schedule.cuh"

namespace cuzk {

constexpr u32 SIGN_OF_INDEX = 0x80000000u;

// Indices of the two points to add, with the sign in the top bit if the operands are signed, and of
// the place for their sum.
struct Pair {
    u32 left, right, out;
};

// Where the passes keep what they need for later. For each warp of the grid `schedule.batch`
// products a lane, and as many u32; a field element is split in parts of 16 bytes so that a warp's
// accesses are consecutive: part c of row k, lane l is at (k * PARTS + c) * 32 + l.
struct FoldScratch {
    uint4 *products;
    u32 *deferred;
    Schedule schedule;
};

template <class F>
constexpr u32 PARTS = sizeof(F) / 16;

// Threads of a block of a fold kernel, and blocks on a multiprocessor. Four blocks of 128 threads
// leave 128 registers a thread.
constexpr u32 FOLD_THREADS = 128;

// Bytes of shared memory a thread needs: two points and a product.
template <class F>
constexpr u32 FOLD_SHARED_BYTES = 5 * sizeof(F);

// Coordinates in Fp need not be reduced between the rounds. They stay below 2 p, differences of them
// and 2 p below 4 p, and since p < R / 9.8 products of such values are below 2 p again without a
// correction (the comments at the additions give the bounds). Infinity alone is exact: (0, 0). In
// Fp2 a product adds the halves of its factors first and has no such room: everything is reduced.
__device__ __forceinline__ Fp product(const Fp &x, const Fp &y) { return Fp::product_below_2p(x, y); }
__device__ __forceinline__ Fp2 product(const Fp2 &x, const Fp2 &y) { return x * y; }

__device__ __forceinline__ Fp square(const Fp &x) { return x.square_below_2p(); }
__device__ __forceinline__ Fp2 square(const Fp2 &x) { return x.squared(); }

// x - y, in Fp below 2 p.
__device__ __forceinline__ Fp difference(const Fp &x, const Fp &y) { return Fp::difference_below_2p(x, y); }
__device__ __forceinline__ Fp2 difference(const Fp2 &x, const Fp2 &y) { return x - y; }

// x - y as one factor of a product, in Fp above 0 and below 4 p.
__device__ __forceinline__ Fp difference_factor(const Fp &x, const Fp &y) {
    return Fp::difference_below_4p(x, y);
}
__device__ __forceinline__ Fp2 difference_factor(const Fp2 &x, const Fp2 &y) { return x - y; }

__device__ __forceinline__ Fp reduced(const Fp &x) { return x.below_p(); }
__device__ __forceinline__ Fp2 reduced(const Fp2 &x) { return x; }

template <class F>
__device__ __forceinline__ Affine<F> reduced(const Affine<F> &point) {
    return {reduced(point.x), reduced(point.y)};
}

template <class F>
__device__ __forceinline__ void set_part(F &value, u32 part, const uint4 &words) {
    u32 *limbs = reinterpret_cast<u32 *>(&value) + 4 * part;
    limbs[0] = words.x, limbs[1] = words.y, limbs[2] = words.z, limbs[3] = words.w;
}

template <class F>
__device__ __forceinline__ uint4 part_of(const F &value, u32 part) {
    const u32 *limbs = reinterpret_cast<const u32 *>(&value) + 4 * part;
    return {limbs[0], limbs[1], limbs[2], limbs[3]};
}

template <class F>
__device__ __forceinline__ F load_parts(const uint4 *parts, u32 stride) {
    F value;
#pragma unroll
    for (u32 c = 0; c < PARTS<F>; c++) set_part(value, c, parts[c * stride]);
    return value;
}

template <class F>
__device__ __forceinline__ void store_parts(uint4 *parts, u32 stride, const F &value) {
#pragma unroll
    for (u32 c = 0; c < PARTS<F>; c++) parts[c * stride] = part_of(value, c);
}

// Through L1: both halves of a 32-byte sector are asked for one after the other, and the second
// must not go to L2 again.
__device__ __forceinline__ void copy_async_cached(uint4 *shared, const uint4 *global) {
#if !defined(CUZK_EMULATION) && __CUDA_ARCH__ >= 800
    const u32 address = static_cast<u32>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global) : "memory");
#else
    copy_async<16>(shared, global);
#endif
}

// -y if `negative`, for y other than 0.
__device__ __forceinline__ Fp negated_if(const Fp &y, bool negative) {
    Fp opposite;
    Carry borrow;
    opposite.limb[0] = sub_cc(FpModulus::p(0), y.limb[0], borrow);
#pragma unroll
    for (int i = 1; i < Fp::N - 1; i++) opposite.limb[i] = subc_cc(FpModulus::p(i), y.limb[i], borrow);
    opposite.limb[Fp::N - 1] = subc(FpModulus::p(Fp::N - 1), y.limb[Fp::N - 1], borrow);
#pragma unroll
    for (int i = 0; i < Fp::N; i++) opposite.limb[i] = negative ? opposite.limb[i] : y.limb[i];
    return opposite;
}

// The same; one of the halves of y may be 0.
__device__ __forceinline__ Fp2 negated_if(const Fp2 &y, bool negative) {
    const Fp2 opposite = -y;
    return {negative ? opposite.c0 : y.c0, negative ? opposite.c1 : y.c1};
}

// Whether the pair needs the complete addition: x1 = x2, or x = 0 for one of them.
__device__ __forceinline__ bool is_exceptional(const Fp &x1, const Fp &x2) {
    // Equal x, below 2 p, differ by 0, p or -p.
    const u32 low = x2.limb[0] - x1.limb[0], p = FpModulus::p(0);
    if (low != 0 && low != p && low != 0 - p && x1.limb[0] != 0 && x2.limb[0] != 0) return false;
    return reduced(x1) == reduced(x2) || x1.is_zero() || x2.is_zero();
}
__device__ __forceinline__ bool is_exceptional(const Fp2 &x1, const Fp2 &x2) {
    const u32 low1 = x1.c0.limb[0], low2 = x2.c0.limb[0];
    if (low1 != low2 && low1 != 0 && low2 != 0) return false;
    return x1 == x2 || x1.is_zero() || x2.is_zero();
}

// The pairs of one chunk, as one lane sees them.
template <class F, class Operands>
struct LanePairs {
    const Operands &operands;
    u32 pairs, first_row, lane;

    // Index of the pair of row `row` of the chunk; it may lie beyond the last pair.
    __device__ __forceinline__ u32 index(u32 row) const { return (first_row + row) * WARP + lane; }

    // That pair, or the last one.
    __device__ __forceinline__ Pair pair(u32 row) const {
        return operands.pair(min(index(row), pairs - 1));
    }

    __device__ __forceinline__ const uint4 *left(const Pair &pair) const { return parts(pair.left); }
    __device__ __forceinline__ const uint4 *right(const Pair &pair) const { return parts(pair.right); }

    __device__ __forceinline__ Affine<F> point(u32 signed_index) const {
        const uint4 *parts = this->parts(signed_index);
        Affine<F> point = {reduced(load_parts<F>(parts, 1)), reduced(load_parts<F>(parts + PARTS<F>, 1))};
        if (Operands::SIGNED && (signed_index & SIGN_OF_INDEX)) point.y = -point.y;
        return point;
    }

    __device__ __forceinline__ void store(u32 out, const F &x, const F &y) const {
        uint4 *parts = reinterpret_cast<uint4 *>(operands.result + out);
        store_parts(parts, 1, x);
        store_parts(parts + PARTS<F>, 1, y);
    }

  private:
    __device__ __forceinline__ const uint4 *parts(u32 signed_index) const {
        const u32 index = Operands::SIGNED ? signed_index & ~SIGN_OF_INDEX : signed_index;
        return reinterpret_cast<const uint4 *>(operands.source + index);
    }
};

// What has to be inverted to add two points of a deferred pair; 1 if nothing.
template <class F>
__device__ __forceinline__ F complete_denominator(const Affine<F> &p, const Affine<F> &q) {
    if (p.is_infinity() || q.is_infinity()) return F::one();
    if (p.x != q.x) return q.x - p.x;
    return p.y == q.y && !p.y.is_zero() ? p.y.doubled() : F::one();
}

// p + q for any p and q, given the denominator's inverse: rare, so with calls.
template <class F>
__device__ __forceinline__ Affine<F> complete_sum(const Affine<F> &p, const Affine<F> &q, const F &over) {
    if (p.is_infinity()) return q;
    if (q.is_infinity()) return p;
    F numerator = q.y - p.y;
    if (p.x == q.x) {
        if (p.y != q.y || p.y.is_zero()) return Affine<F>::infinity();
        numerator = product_call(p.x, p.x);
        numerator = numerator.doubled() + numerator;
    }
    const F lambda = product_call(numerator, over);
    const F x = product_call(lambda, lambda) - p.x - q.x;
    return {x, product_call(lambda, p.x - x) - p.y};
}

// Adds the `count` pairs whose rows this lane has noted down. The chunk's products are used up.
template <class F, class Operands>
__device__ __forceinline__ void fold_deferred(const LanePairs<F, Operands> &lane, uint4 *products,
                                              const u32 *deferred, u32 count) {
    F product = F::one();
#pragma unroll 1
    for (u32 e = 0; e < count; e++) {
        const Pair pair = lane.pair(deferred[e * WARP]);
        store_parts(products + e * PARTS<F> * WARP, WARP, product);
        product = product_call(product, complete_denominator(lane.point(pair.left), lane.point(pair.right)));
    }
    F inverted = inverse_call(product);
#pragma unroll 1
    for (u32 e = count; e-- > 0;) {
        const Pair pair = lane.pair(deferred[e * WARP]);
        const Affine<F> p = lane.point(pair.left), q = lane.point(pair.right);
        const F over = product_call(inverted, load_parts<F>(products + e * PARTS<F> * WARP, WARP));
        inverted = product_call(inverted, complete_denominator(p, q));
        const Affine<F> sum = complete_sum(p, q, over);
        lane.store(pair.out, sum.x, sum.y);
    }
}

// First pass: the product of the chunk's denominators, in Fp below 2 p.
template <class F, class Operands>
__device__ __forceinline__ F multiply_denominators(const LanePairs<F, Operands> &lane, u32 rows,
                                                   uint4 *products, uint4 *staged) {
    auto prefetch = [&](const Pair &pair) {
        const uint4 *left = lane.left(pair), *right = lane.right(pair);
#pragma unroll
        for (u32 c = 0; c < PARTS<F>; c++) {
            copy_async_cached(staged + c * FOLD_THREADS, left + c);
            copy_async_cached(staged + (PARTS<F> + c) * FOLD_THREADS, right + c);
        }
        copy_async_commit();
    };

    prefetch(lane.pair(0));
    Pair next = lane.pair(min(1u, rows - 1));
    F accumulated = F::one();
#pragma unroll 1
    for (u32 row = 0; row < rows; row++) {
        copy_async_wait<0>();
        const F x1 = load_parts<F>(staged, FOLD_THREADS);
        const F x2 = load_parts<F>(staged + PARTS<F> * FOLD_THREADS, FOLD_THREADS);
        if (row + 1 < rows) {
            prefetch(next);
            next = lane.pair(min(row + 2, rows - 1));
        }
        store_parts(products + row * PARTS<F> * WARP, WARP, accumulated);
        if (lane.index(row) < lane.pairs && !is_exceptional(x1, x2)) {
            // 4 p * 2 p / R + p < 1.82 p.
            accumulated = product(accumulated, difference_factor(x2, x1));
        }
    }
    return accumulated;
}

// Second pass: the sums, given the inverse of the product. Returns how many pairs it has left over.
template <class F, class Operands>
__device__ __forceinline__ u32 finish_additions(const LanePairs<F, Operands> &lane, u32 rows,
                                                const uint4 *products, u32 *deferred, uint4 *staged,
                                                F inverted) {
    auto prefetch = [&](const Pair &pair, u32 row) {
        const uint4 *left = lane.left(pair), *right = lane.right(pair);
        const uint4 *product = products + row * PARTS<F> * WARP;
#pragma unroll
        for (u32 c = 0; c < 2 * PARTS<F>; c++) {
            copy_async_cached(staged + c * FOLD_THREADS, left + c);
            copy_async_cached(staged + (2 * PARTS<F> + c) * FOLD_THREADS, right + c);
        }
#pragma unroll
        for (u32 c = 0; c < PARTS<F>; c++) {
            copy_async<16>(staged + (4 * PARTS<F> + c) * FOLD_THREADS, product + c * WARP);
        }
        copy_async_commit();
    };
    auto staged_value = [&](u32 index) {
        return load_parts<F>(staged + index * PARTS<F> * FOLD_THREADS, FOLD_THREADS);
    };

    Pair pair = lane.pair(rows - 1);
    prefetch(pair, rows - 1);
    Pair next = lane.pair(rows >= 2 ? rows - 2 : 0);
    u32 left_over = 0;
#pragma unroll 1
    for (u32 row = rows; row-- > 0;) {
        copy_async_wait<0>();
        const F x1 = staged_value(0), x2 = staged_value(2), before = staged_value(4);
        F y1 = staged_value(1), y2 = staged_value(3);
        const Pair now = pair;
        if (row > 0) {
            pair = next;
            prefetch(pair, row - 1);
            next = lane.pair(row >= 2 ? row - 2 : 0);
        }
        if (lane.index(row) >= lane.pairs) continue;
        if (is_exceptional(x1, x2)) {
            deferred[left_over * WARP] = row;
            left_over++;
            continue;
        }
        if constexpr (Operands::SIGNED) {
            y1 = negated_if(y1, (now.left & SIGN_OF_INDEX) != 0);
            y2 = negated_if(y2, (now.right & SIGN_OF_INDEX) != 0);
        }
        // In units of p: `inverted` and `before` are below 1.82, so their product is below 1.34, lambda
        // below 1.55 and its square below 1.25; lambda (x1 - x) is below 1.63.
        const F lambda = product(difference_factor(y2, y1), product(inverted, before));
        inverted = product(inverted, difference_factor(x2, x1));
        const F x = difference(difference(square(lambda), x1), x2);
        lane.store(now.out, x, difference(product(lambda, difference_factor(x1, x)), y1));
    }
    return left_over;
}

// result[out] = source[left] + source[right] for the pairs 0 ... pairs - 1 of `operands`, which has
// the members `source`, `result`, `pair(i)` and `SIGNED`. No pair may read a place that another one
// writes. Points are affine, with coordinates below 2 p in Fp (below p where operands are
// signed) and reduced in Fp2; infinity is (0, 0). So are the sums.
//
// Blocks of FOLD_THREADS threads, as many as fit on the device; FOLD_SHARED_BYTES<F> bytes of
// dynamic shared memory a thread. A pair reads two x, then two points, and writes one, and writes
// and reads a product: 480 bytes for G1, and its indices twice.
template <class F, class Operands>
__device__ __forceinline__ void fold_pairs(const Operands &operands, u32 pairs, const FoldScratch &scratch) {
    CUZK_DYNAMIC_SHARED(uint4, shared);
    const u32 lane_index = threadIdx.x % WARP;
    const u64 first_of_warp =
        u64(blockIdx.x * (FOLD_THREADS / WARP) + threadIdx.x / WARP) * scratch.schedule.batch * WARP + lane_index;
    uint4 *products = scratch.products + (first_of_warp - lane_index) * PARTS<F> + lane_index;
    u32 *deferred = scratch.deferred + first_of_warp;
    uint4 *staged = shared + threadIdx.x;

    WarpChunks chunks(scratch.schedule, (pairs + WARP - 1) / WARP);
#pragma unroll 1
    for (Chunk chunk = chunks.next(); chunk.rows > 0; chunk = chunks.next()) {
        const LanePairs<F, Operands> lane = {operands, pairs, chunk.first_row, lane_index};
        const F product = multiply_denominators(lane, chunk.rows, products, staged);
        const F inverted = inverse_call(reduced(product));
        const u32 left_over =
            finish_additions(lane, chunk.rows, products, deferred, staged, inverted);
        // Rare: the branch costs nothing when no lane takes it.
        if (left_over > 0) fold_deferred(lane, products, deferred, left_over);
        __syncwarp();
    }
}

}  // namespace cuzk
