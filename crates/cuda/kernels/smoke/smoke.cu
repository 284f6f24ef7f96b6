// The programming model itself: what every other kernel relies on, in one small kernel.

#include "common/kernel.cuh"

namespace cuzk {

struct SmokeParams {
    const u32 *x;
    u32 *y;
    u64 *sums;
    u32 *ballots;
    u32 factor;
    u32 len;
};

// y[i] = factor*x[i] + y[i] mod 2^32, in place; sums[b] += the sum of block b's new values;
// ballots[w] = the parities of the new values of warp w of the grid, bit l for its element l^1.
//
// Each thread works on its neighbour's element, so that a missing barrier shows.
// Grid: ceil(len/256) blocks of 256 threads; 64 bytes of static shared memory and 1024 of dynamic.
// Reads 8 and writes 4 bytes an element.
CUZK_KERNEL(smoke_kernel, 256, 1, SmokeParams) {
    __shared__ u64 partial[8];
    CUZK_DYNAMIC_SHARED(u32, staged);
    const u32 thread = threadIdx.x;
    const u32 i = blockIdx.x * blockDim.x + thread;
    const u32 j = i ^ 1;
    if (i < p.len) copy_async<4>(&staged[thread], &p.x[i]);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    u32 value = 0;
    if (j < p.len) {
        value = p.factor * staged[thread ^ 1] + p.y[j];
        p.y[j] = value;
    }
    const u32 ballot = __ballot_sync(FULL_WARP, value & 1);
    u64 sum = value;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(FULL_WARP, sum, step);
    if (thread % WARP == 0) {
        p.ballots[i / WARP] = ballot;
        partial[thread / WARP] = sum;
    }
    __syncthreads();
    if (thread < 8) {
        sum = partial[thread];
        for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(0xff, sum, step, 8);
        if (thread == 0) atomicAdd(&p.sums[blockIdx.x], sum);
    }
}

struct DivergeParams {
    u32 *out;
};

// A block whose halves wait at two barriers: the emulated device must refuse it. Never launched on
// a device, where the outcome is undefined.
CUZK_KERNEL(diverge_kernel, 64, 1, DivergeParams) {
    if (threadIdx.x < 32) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    p.out[threadIdx.x] = 1;
}

}  // namespace cuzk
