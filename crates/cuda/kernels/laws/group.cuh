// Every operation on points, one result after the other, for a comparison with another library.

#pragma once

#include "common/kernel.cuh"
#include "curve/xyzz.cuh"

namespace cuzk {

// p and q: len affine points each; zp and zq: non-zero values, by which the coordinates of their
// XYZZ forms are scaled. out[operation * len + i] is the affine result for element i; flags[i] has
// bit 0 set if p = q, bit 1 if p is infinity and bit 2 if p is on the curve.
template <class F>
struct GroupLawsParams {
    const Affine<F> *p;
    const Affine<F> *q;
    const F *zp;
    const F *zq;
    Affine<F> *out;
    u32 *flags;
    u32 len;
};

enum GroupOperation : u32 { ADD_AFFINE, ADD, DOUBLE, DOUBLE_AFFINE, NEGATE, SAME, GROUP_OPERATIONS };

// (x z^2, y z^3, z^2, z^3); for infinity (z, z^3, 0, 0), whose x and y must not matter.
template <class F>
__device__ __forceinline__ Xyzz<F> scaled(const Affine<F> &point, const F &z) {
    const F zz = z.squared(), zzz = zz * z;
    if (point.is_infinity()) return {z, zzz, F::zero(), F::zero()};
    return {point.x * zz, point.y * zzz, zz, zzz};
}

// One thread per element; a block of 128 threads.
template <class F>
__device__ __forceinline__ void group_laws(const GroupLawsParams<F> &params) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    const Affine<F> p = params.p[i], q = params.q[i];
    const Xyzz<F> r = scaled(p, params.zp[i]), s = scaled(q, params.zq[i]);
#pragma unroll 1
    for (u32 operation = 0; operation < GROUP_OPERATIONS; operation++) {
        Xyzz<F> result = r;
        switch (operation) {
            case ADD_AFFINE: result.add(q); break;
            case ADD: result.add(s); break;
            case DOUBLE: result = r.doubled(); break;
            case DOUBLE_AFFINE: result = Xyzz<F>::double_affine(p); break;
            case NEGATE: result = -r; break;
            default: break;
        }
        params.out[operation * params.len + i] = result.to_affine();
    }
    params.flags[i] = (same_point(r, s) ? 1 : 0) | (r.is_infinity() ? 2 : 0) | (is_on_curve(p) ? 4 : 0);
}

}  // namespace cuzk
