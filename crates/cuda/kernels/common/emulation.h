// Host stand-ins for the CUDA language, so that kernels run in tests without a GPU.
//
// A launch runs its blocks one after the other on the calling thread; a block's threads are
// fibers that switch only where they wait: at a barrier, or in a warp collective. Execution is
// deterministic. Every second block (counting launches too) runs its threads from the last to the
// first, so that a missing barrier shows as a wrong result in one of the two orders.
//
// What no device promises is reported instead of tolerated: a barrier that some threads reach at
// another place in the source, or a collective whose mask names a lane that never comes, fails the
// launch with a text that says who waits where. Dynamic shared memory is filled with 0xA5 before
// each block.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

// === Qualifiers ===

#define __device__
#define __host__
#define __global__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// Blocks run one after the other on one thread, so one copy a thread is one a block.
#define __shared__ static thread_local

// === Vector types ===

struct alignas(8) uint2 { unsigned int x, y; };
struct alignas(16) uint4 { unsigned int x, y, z, w; };
struct alignas(16) ulonglong2 { unsigned long long x, y; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }
static inline int2 make_int2(int x, int y) { return {x, y}; }

namespace cuzk::emulation {

struct Index3 { unsigned x, y, z; };

// Of the fiber that runs.
extern __thread Index3 thread_index, block_index, block_dimension, grid_dimension;

using Entry = void (*)(const void *params);

// Makes a kernel known by name.
struct Registration {
    Registration(const char *name, Entry entry, size_t params_bytes, unsigned max_threads);
};

enum class Collective : unsigned { Sync, Shuffle, Ballot, All, Any, Add, Min, Max, And, Or, Xor, MatchAny };

// Waits for the lanes of `mask`, then gives each its result: the value of lane `source` for
// Shuffle, the reduction over the mask otherwise.
uint64_t collective(Collective operation, unsigned mask, uint64_t value, unsigned source);

enum class Vote : unsigned { None, Or, And, Count };

// Waits for all threads of the block that have not ended; gives the vote over their predicates.
int barrier(Vote vote, int predicate, const char *file, int line);

// The block's dynamic shared memory.
void *dynamic_shared();

// Ends the launch with an error.
[[noreturn]] void trap(const char *file, int line);

inline void copy_bytes(void *to, const void *from, size_t bytes) { std::memcpy(to, from, bytes); }

template <typename T>
uint64_t to_word(T value) {
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "a lane holds 64 bits");
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof(T));
    return word;
}

template <typename T>
T from_word(uint64_t word) {
    T value;
    std::memcpy(&value, &word, sizeof(T));
    return value;
}

// The lane of the fiber that runs.
inline unsigned lane() { return thread_index.x % 32; }

template <typename T>
T shuffle(unsigned mask, T value, unsigned source) {
    return from_word<T>(collective(Collective::Shuffle, mask, to_word(value), source));
}

}  // namespace cuzk::emulation

#define threadIdx ::cuzk::emulation::thread_index
#define blockIdx ::cuzk::emulation::block_index
#define blockDim ::cuzk::emulation::block_dimension
#define gridDim ::cuzk::emulation::grid_dimension
static constexpr int warpSize = 32;

// === Barriers and collectives ===

#define __syncthreads() ((void)::cuzk::emulation::barrier(::cuzk::emulation::Vote::None, 0, __FILE__, __LINE__))
#define __syncthreads_or(predicate) ::cuzk::emulation::barrier(::cuzk::emulation::Vote::Or, (predicate) != 0, __FILE__, __LINE__)
#define __syncthreads_and(predicate) ::cuzk::emulation::barrier(::cuzk::emulation::Vote::And, (predicate) != 0, __FILE__, __LINE__)
#define __syncthreads_count(predicate) ::cuzk::emulation::barrier(::cuzk::emulation::Vote::Count, (predicate) != 0, __FILE__, __LINE__)
#define __trap() ::cuzk::emulation::trap(__FILE__, __LINE__)

static inline void __syncwarp(unsigned mask = 0xffffffffu) {
    ::cuzk::emulation::collective(::cuzk::emulation::Collective::Sync, mask, 0, 0);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    const unsigned first = ::cuzk::emulation::lane() & ~unsigned(width - 1);
    return ::cuzk::emulation::shuffle(mask, value, first + (unsigned(source) & unsigned(width - 1)));
}

template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const unsigned lane = ::cuzk::emulation::lane(), place = lane & unsigned(width - 1);
    return ::cuzk::emulation::shuffle(mask, value, place >= delta ? lane - delta : lane);
}

template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const unsigned lane = ::cuzk::emulation::lane(), place = lane & unsigned(width - 1);
    return ::cuzk::emulation::shuffle(mask, value, place + delta < unsigned(width) ? lane + delta : lane);
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
    const unsigned lane = ::cuzk::emulation::lane();
    const unsigned other = lane ^ unsigned(lanes);
    const unsigned last = lane | unsigned(width - 1);
    return ::cuzk::emulation::shuffle(mask, value, other <= last ? other : lane);
}

#define CUZK_EMULATED_VOTE(name, Type, Operation)                                                  \
    static inline Type name(unsigned mask, int predicate) {                                        \
        return Type(::cuzk::emulation::collective(::cuzk::emulation::Collective::Operation, mask,  \
                                                  predicate != 0, 0));                             \
    }
CUZK_EMULATED_VOTE(__ballot_sync, unsigned, Ballot)
CUZK_EMULATED_VOTE(__all_sync, int, All)
CUZK_EMULATED_VOTE(__any_sync, int, Any)
#undef CUZK_EMULATED_VOTE

#define CUZK_EMULATED_REDUCTION(name, Operation)                                                   \
    static inline unsigned name(unsigned mask, unsigned value) {                                   \
        return unsigned(::cuzk::emulation::collective(::cuzk::emulation::Collective::Operation,    \
                                                      mask, value, 0));                            \
    }
CUZK_EMULATED_REDUCTION(__reduce_add_sync, Add)
CUZK_EMULATED_REDUCTION(__reduce_min_sync, Min)
CUZK_EMULATED_REDUCTION(__reduce_max_sync, Max)
CUZK_EMULATED_REDUCTION(__reduce_and_sync, And)
CUZK_EMULATED_REDUCTION(__reduce_or_sync, Or)
CUZK_EMULATED_REDUCTION(__reduce_xor_sync, Xor)
#undef CUZK_EMULATED_REDUCTION

template <typename T>
unsigned __match_any_sync(unsigned mask, T value) {
    return unsigned(::cuzk::emulation::collective(::cuzk::emulation::Collective::MatchAny, mask,
                                                  ::cuzk::emulation::to_word(value), 0));
}

static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __nanosleep(unsigned) {}

// === Memory ===

template <typename T> T __ldg(const T *p) { return *p; }
template <typename T> T __ldca(const T *p) { return *p; }
template <typename T> T __ldcg(const T *p) { return *p; }
template <typename T> T __ldcs(const T *p) { return *p; }
template <typename T> T __ldlu(const T *p) { return *p; }
template <typename T> void __stwb(T *p, T value) { *p = value; }
template <typename T> void __stcg(T *p, T value) { *p = value; }
template <typename T> void __stcs(T *p, T value) { *p = value; }
template <typename T> void __stwt(T *p, T value) { *p = value; }

// Fibers never switch inside an atomic, so plain code is atomic.
#define CUZK_EMULATED_ATOMIC(name, expression)                                                     \
    template <typename T>                                                                          \
    T name(T *address, typename std::common_type<T>::type value) {                                 \
        const T old = *address;                                                                    \
        *address = T(expression);                                                                  \
        return old;                                                                                \
    }
CUZK_EMULATED_ATOMIC(atomicAdd, old + value)
CUZK_EMULATED_ATOMIC(atomicSub, old - value)
CUZK_EMULATED_ATOMIC(atomicOr, old | value)
CUZK_EMULATED_ATOMIC(atomicAnd, old &value)
CUZK_EMULATED_ATOMIC(atomicXor, old ^ value)
CUZK_EMULATED_ATOMIC(atomicExch, value)
CUZK_EMULATED_ATOMIC(atomicMin, std::min<T>(old, value))
CUZK_EMULATED_ATOMIC(atomicMax, std::max<T>(old, value))
CUZK_EMULATED_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
CUZK_EMULATED_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef CUZK_EMULATED_ATOMIC

template <typename T>
T atomicCAS(T *address, typename std::common_type<T>::type compare,
            typename std::common_type<T>::type value) {
    const T old = *address;
    if (old == compare) *address = value;
    return old;
}

// === Integers ===

using std::max;
using std::min;

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
static inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((uint64_t(a) * b) >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}

static inline unsigned __brev(unsigned x) {
    x = (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
    x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
    x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
    return __builtin_bswap32(x);
}

static inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev(unsigned(x)) << 32 | __brev(unsigned(x >> 32));
}

static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return unsigned(((uint64_t(high) << 32 | low) << (shift & 31)) >> 32);
}

static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return unsigned((uint64_t(high) << 32 | low) >> (shift & 31));
}

static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const uint64_t bytes = uint64_t(y) << 32 | x;
    unsigned out = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned choice = selector >> (4 * i) & 0xf;
        unsigned byte = unsigned(bytes >> (8 * (choice & 7))) & 0xff;
        if (choice & 8) byte = byte & 0x80 ? 0xff : 0;
        out |= byte << (8 * i);
    }
    return out;
}
