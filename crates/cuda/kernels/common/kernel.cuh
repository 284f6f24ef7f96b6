// What every kernel source includes: the entry-point macro, integer names, and the few
// device operations that need a stand-in on the host.
//
// A kernel is written once and compiled twice: by nvcc for the device, and, with CUZK_EMULATION
// defined, by the host's C++ compiler for tests without a GPU (emulation.h).
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(CUZK_EMULATION)
#include "common/emulation.h"
#endif

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
// Not uint64_t: CUDA's atomics are overloaded for this type.
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

// A kernel: CUZK_KERNEL(name, threads, min_blocks, ParamsType) { ... p.field ... }
//
// `threads` is the largest block it may be launched with, `min_blocks` the number of such blocks
// that must fit on one multiprocessor (it bounds the registers; 1 where in doubt), or as many as an
// architecture with fewer resident threads holds. Its only
// argument is `p`, a plain struct of the same layout as the Rust struct given to
// Stream::launch. Names are unique over all topics and are found by name at run time.
#if defined(CUZK_EMULATION)
#define CUZK_KERNEL(name, threads, min_blocks, ParamsType)                                        \
    static void name(const ParamsType &p);                                                        \
    static void name##_entry(const void *p) { name(*static_cast<const ParamsType *>(p)); }        \
    static const ::cuzk::emulation::Registration name##_registration(                             \
        #name, name##_entry, sizeof(ParamsType), threads);                                        \
    static void name(const ParamsType &p)
#else
// Threads that a multiprocessor holds (CUDA C++ Programming Guide, technical specifications per
// compute capability): ptxas refuses a kernel that asks for more blocks than fit into them.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
#define CUZK_RESIDENT_THREADS 1024
#elif defined(__CUDA_ARCH__) && \
    (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
#define CUZK_RESIDENT_THREADS 1536
#else
#define CUZK_RESIDENT_THREADS 2048
#endif
constexpr unsigned cuzk_min_blocks(unsigned threads, unsigned min_blocks) {
    return threads * min_blocks <= CUZK_RESIDENT_THREADS ? min_blocks
                                                         : CUZK_RESIDENT_THREADS / threads;
}
#define CUZK_KERNEL(name, threads, min_blocks, ParamsType)                                        \
    extern "C" __global__ void __launch_bounds__(threads, cuzk_min_blocks(threads, min_blocks))   \
        name(const __grid_constant__ ParamsType p)
#endif

// Names the block's dynamic shared memory (the launch's `shared_bytes`, aligned to 16 bytes):
// CUZK_DYNAMIC_SHARED(Fr, values);  then values[i].
#if defined(CUZK_EMULATION)
#define CUZK_DYNAMIC_SHARED(Type, name)                                                           \
    Type *const name = reinterpret_cast<Type *>(::cuzk::emulation::dynamic_shared())
#else
#define CUZK_DYNAMIC_SHARED(Type, name)                                                           \
    extern __shared__ __align__(16) unsigned char cuzk_dynamic_shared[];                          \
    Type *const name = reinterpret_cast<Type *>(cuzk_dynamic_shared)
#endif

// A function that is to stay a call.
#if defined(CUZK_EMULATION)
#define CUZK_NOINLINE __attribute__((noinline))
#else
#define CUZK_NOINLINE __noinline__
#endif

namespace cuzk {

constexpr u32 FULL_WARP = 0xffffffffu;
constexpr u32 WARP = 32;

// Copies 4, 8 or 16 bytes from global to shared memory without passing through registers; both
// addresses are aligned to BYTES. Seen by the issuing thread after copy_async_wait, by the block
// after a barrier that follows it. Before sm_80 (and on the host) an ordinary copy.
template <int BYTES>
__device__ __forceinline__ void copy_async(void *shared, const void *global) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async copies 4, 8 or 16 bytes");
#if defined(CUZK_EMULATION)
    ::cuzk::emulation::copy_bytes(shared, global, BYTES);
#elif __CUDA_ARCH__ >= 800
    const u32 address = static_cast<u32>(__cvta_generic_to_shared(shared));
    if constexpr (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(global), "n"(BYTES) : "memory");
    }
#else
    if constexpr (BYTES == 16) {
        *static_cast<uint4 *>(shared) = *static_cast<const uint4 *>(global);
    } else if constexpr (BYTES == 8) {
        *static_cast<uint2 *>(shared) = *static_cast<const uint2 *>(global);
    } else {
        *static_cast<u32 *>(shared) = *static_cast<const u32 *>(global);
    }
#endif
}

// Closes the group of the copies issued since the last call.
__device__ __forceinline__ void copy_async_commit() {
#if !defined(CUZK_EMULATION) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most PENDING of the most recent groups are still under way.
template <int PENDING>
__device__ __forceinline__ void copy_async_wait() {
#if !defined(CUZK_EMULATION) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

}  // namespace cuzk
