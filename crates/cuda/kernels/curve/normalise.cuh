// Affine points of many sums, with one inversion for all that a thread computes.

#pragma once

#include "msm/fold.cuh"
#include "xyzz.cuh"

namespace cuzk {

// Which of `len` things a thread has: number thread, thread + threads, ...
struct Rows {
    u32 threads, thread;
    // Of the thread, and the most of any.
    u32 count, all;

    __device__ __forceinline__ explicit Rows(u32 len)
        : threads(gridDim.x * blockDim.x), thread(blockIdx.x * blockDim.x + threadIdx.x), count(0),
          all(len == 0 ? 0 : (len - 1) / threads + 1) {
        if (thread < len) count = (len - 1 - thread) / threads + 1;
    }

    __device__ __forceinline__ u32 index(u32 row) const { return row * threads + thread; }

    // The thread's place for field element `what` of a row in [..][all][PARTS<F>][threads].
    template <class F>
    __device__ __forceinline__ uint4 *kept(uint4 *kept, u32 what, u32 row) const {
        return kept + u64(what * all + row) * PARTS<F> * threads + thread;
    }
};

// place(i) <- value(i) for the thread's i; `kept` has room for three field elements of every row and
// thread. Places are written twice: nothing that value(j) reads may be one of them for any j.
template <class F, class Value, class Place>
__device__ __forceinline__ void normalise(const Rows &rows, uint4 *kept, const Value &value,
                                          const Place &place) {
    F product = F::one();
#pragma unroll 1
    for (u32 row = 0; row < rows.count; row++) {
        const u32 i = rows.index(row);
        Xyzz<F> sum = value(i);
        // Infinity is (0, 0, 0, 1) here: an inversion turns it into (0, 0).
        if (sum.is_infinity()) sum = {F::zero(), F::zero(), F::zero(), F::one()};
        *place(i) = {sum.x, sum.y};
        store_parts(rows.kept<F>(kept, 0, row), rows.threads, sum.zz);
        store_parts(rows.kept<F>(kept, 1, row), rows.threads, sum.zzz);
        store_parts(rows.kept<F>(kept, 2, row), rows.threads, product);
        product *= sum.zzz;
    }
    if (rows.count == 0) return;
    F inverted = inverse_call(product);
#pragma unroll 1
    for (u32 row = rows.count; row-- > 0;) {
        const u32 i = rows.index(row);
        const F over_zzz = inverted * load_parts<F>(rows.kept<F>(kept, 2, row), rows.threads);
        inverted *= load_parts<F>(rows.kept<F>(kept, 1, row), rows.threads);
        // 1 / ZZ = (ZZ / ZZZ)^2.
        const F over_zz = (load_parts<F>(rows.kept<F>(kept, 0, row), rows.threads) * over_zzz).squared();
        const Affine<F> point = *place(i);
        *place(i) = {point.x * over_zz, point.y * over_zzz};
    }
}

}  // namespace cuzk
