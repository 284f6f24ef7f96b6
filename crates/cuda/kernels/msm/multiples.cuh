// Bases: their multiples by powers of two, made once when a key is loaded, and the last step of making
// bases by additions.

#pragma once

#include "msm/fold.cuh"

namespace cuzk {

template <class F>
struct MultiplesParams {
    const Affine<F> *source;
    Affine<F> *result;
    FoldScratch scratch;
    u32 points, doublings;
};

// result[i] = 2^doublings source[i], for doublings >= 1. Affine doublings with one inversion for all
// points of a chunk: lambda = 3 x^2 / (2 y), x3 = lambda^2 - 2 x, y3 = lambda (x - x3) - y; 5 M + 2 S.
// A chunk is doubled over and over by the warp that has it.
// Grid: as many blocks of FOLD_THREADS threads as fit. A doubling reads y, then the point, and writes
// it, and writes and reads a product.
template <class F>
__device__ __forceinline__ void multiply_by_power_of_two(const MultiplesParams<F> &p) {
    const u32 lane = threadIdx.x % WARP;
    const u64 first_of_warp =
        u64(blockIdx.x * (FOLD_THREADS / WARP) + threadIdx.x / WARP) * p.scratch.schedule.batch * WARP;
    uint4 *products = p.scratch.products + first_of_warp * PARTS<F> + lane;

    WarpChunks chunks(p.scratch.schedule, (p.points + WARP - 1) / WARP);
#pragma unroll 1
    for (Chunk chunk = chunks.next(); chunk.rows > 0; chunk = chunks.next()) {
        const u32 first = chunk.first_row * WARP + lane;
#pragma unroll 1
        for (u32 step = 0; step < p.doublings; step++) {
            const Affine<F> *source = step == 0 ? p.source : p.result;
            F product = F::one();
#pragma unroll 1
            for (u32 row = 0; row < chunk.rows; row++) {
                store_parts(products + row * PARTS<F> * WARP, WARP, product);
                const u32 i = first + row * WARP;
                if (i >= p.points) continue;
                const F y = source[i].y;
                if (!y.is_zero()) product *= y.doubled();
            }
            F inverted = inverse_call(product);
#pragma unroll 1
            for (u32 row = chunk.rows; row-- > 0;) {
                const u32 i = first + row * WARP;
                if (i >= p.points) continue;
                const Affine<F> point = source[i];
                if (point.y.is_zero()) {  // infinity: no point of either curve has order 2
                    p.result[i] = Affine<F>::infinity();
                    continue;
                }
                const F over = inverted * load_parts<F>(products + row * PARTS<F> * WARP, WARP);
                inverted *= point.y.doubled();
                const F squared = point.x.squared();
                const F lambda = (squared.doubled() + squared) * over;
                const F x = lambda.squared() - point.x.doubled();
                p.result[i] = {x, lambda * (point.x - x) - point.y};
            }
        }
    }
}

template <class F>
struct ReducePointsParams {
    Affine<F> *points;
    u32 count;
};

// Reduces the coordinates of points that a fold has left, as bases must be.
// Grid: ceil(count / FOLD_THREADS) blocks of FOLD_THREADS threads. Reads and writes the points.
template <class F>
__device__ __forceinline__ void reduce_points(const ReducePointsParams<F> &p) {
    const u32 i = blockIdx.x * FOLD_THREADS + threadIdx.x;
    if (i < p.count) p.points[i] = reduced(p.points[i]);
}

}  // namespace cuzk
