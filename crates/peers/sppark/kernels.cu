// sppark's MSM over G1 and G2, its sum of selected points, and its NTT.

#include <ff/bls12-381-fp2.hpp>

using bls12_381::fp_t;
using bls12_381::fp2_t;
using bls12_381::fr_t;

#include <ec/jacobian_t.hpp>
#include <ec/xyzz_t.hpp>

// The names that sppark's headers expect.
typedef jacobian_t<fp_t> point_t;
typedef xyzz_t<fp_t> bucket_t;
typedef bucket_t::affine_t affine_t;
typedef fr_t scalar_t;

#include <msm/pippenger.cuh>
#include <ntt/ntt.cuh>

// The same for G2, whose kernels the headers do not instantiate.
typedef jacobian_t<fp2_t> point2_t;
typedef xyzz_t<fp2_t> bucket2_t;
typedef bucket2_t::affine_t affine2_t;

#ifdef __CUDA_ARCH__

template __global__ void accumulate<bucket2_t, affine2_t::mem_t>(
    bucket2_t::mem_t[], uint32_t, uint32_t, affine2_t::mem_t[], const vec2d_t<uint32_t>,
    const vec2d_t<uint32_t>, uint32_t);
template __global__ void batch_addition<bucket2_t>(
    bucket2_t::mem_t[], const affine2_t::mem_t[], size_t, const uint32_t[], const uint32_t &);
template __global__ void integrate<bucket2_t>(bucket2_t::mem_t[], uint32_t, uint32_t, uint32_t);
template __global__ void batch_addition<bucket_t, affine_t::mem_t>(
    bucket_t::mem_t[], const affine_t::mem_t[], uint32_t, const uint32_t[], bool, uint32_t);

#else

#include "shim.cuh"

using G1 = Sum<bucket_t, point_t, affine_t, scalar_t>;
using G2 = Sum<bucket2_t, point2_t, affine2_t, scalar_t>;

extern "C" int sppark_g1_create(void **out, size_t len) { return G1::create(out, len); }
extern "C" int sppark_g1_run(void *sum, void *out, void *points, void *scalars, size_t len) {
    return G1::run(sum, out, points, scalars, len);
}
extern "C" int sppark_g1_destroy(void *sum) { return G1::destroy(sum); }

extern "C" int sppark_g2_create(void **out, size_t len) { return G2::create(out, len); }
extern "C" int sppark_g2_run(void *sum, void *out, void *points, void *scalars, size_t len) {
    return G2::run(sum, out, points, scalars, len);
}
extern "C" int sppark_g2_destroy(void *sum) { return G2::destroy(sum); }

// The sum of the points whose bit is set, lowest bits first; a multiple of 1024 points. *ms is the
// kernel's time by events; partial sums are added up on the host.
extern "C" int sppark_g1_select(void *out, void *points, const void *bits, uint32_t len, float *ms) {
    using Stored = affine_t::mem_t;
    using Bucket = bucket_t::mem_t;
    return guarded([&] {
        const gpu_t &gpu = select_gpu();
        std::vector<bucket_t> sums(gpu.sm_count() * BATCH_ADD_BLOCK_SIZE / WARP_SZ);
        dev_ptr_t<Bucket> partial{sums.size(), gpu[0]};
        void (*kernel)(Bucket *, const Stored *, uint32_t, const uint32_t *, bool, uint32_t) =
            batch_addition<bucket_t, Stored, Bucket, affine_t>;
        Bucket *partial_sums = &partial[0];
        bool accumulate = false;
        uint32_t stream = 0;
        void *arguments[] = {&partial_sums, &points, &len, &bits, &accumulate, &stream};
        Timer timer(gpu[0]);
        CUDA_OK(cudaLaunchCooperativeKernel(reinterpret_cast<const void *>(kernel), dim3(gpu.sm_count()),
                                            dim3(BATCH_ADD_BLOCK_SIZE), arguments, 0, gpu[0]));
        *ms = timer.stop();
        gpu[0].DtoH(sums, partial_sums);
        gpu[0].sync();
        point_t sum;
        sum.inf();
        for (const bucket_t &partial : sums) sum.add(point_t(partial));
        *static_cast<point_t *>(out) = sum;
        return 0;
    });
}

// One NTT of 2^log_len values in place, waited for; *ms is its time by events. Values in natural
// order become bit-reversed ones, or the other way round if `from_reversed`.
extern "C" int sppark_ntt(void *values, uint32_t log_len, bool from_reversed, bool inverse, float *ms) {
    return guarded([&] {
        const gpu_t &gpu = select_gpu();
        Timer timer(gpu[0]);
        NTT::Base_dev_ptr(gpu[0], static_cast<fr_t *>(values), log_len,
                          from_reversed ? NTT::InputOutputOrder::RN : NTT::InputOutputOrder::NR,
                          inverse ? NTT::Direction::inverse : NTT::Direction::forward, NTT::Type::standard);
        *ms = timer.stop();
        return 0;
    });
}

#endif
