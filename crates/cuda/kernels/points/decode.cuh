// Points as key files hold them, to affine points in Montgomery form.
//
// The encoding of a published key is groth16::key's: a base field element is 48 bytes, big-endian, canonical;
// G1 = x | y, G2 = x.c1 | x.c0 | y.c1 | y.c0. The three top bits of the first byte are flags,
// none of which is set in a key file.

#pragma once

#include "common/kernel.cuh"
#include "curve/affine.cuh"

namespace cuzk {

// What is wrong with a point: groth16::key::PointFault, in the order in which it looks.
enum PointFault : u32 {
    COMPRESSED = 1,
    INFINITE = 2,
    STRAY_FLAG = 3,
    NOT_CANONICAL = 4,
    NOT_ON_CURVE = 5,
};

template <class F>
struct DecodeParams {
    const uint4 *encoded;  // len points of the file
    Affine<F> *points;     // the same points, decoded; bad ones are left as infinity
    u64 *fault;            // the smallest index << 8 | PointFault of all launches; all ones before
    u64 first_index;       // of the first point in its section
    u32 len;
    u32 check_curve;       // whether points off the curve are refused too
};

// 48 big-endian bytes as limbs, not converted. The top three bits are the caller's to look at.
__device__ __forceinline__ Fp big_endian(const uint4 *bytes) {
    Fp value;
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const uint4 words = __ldcs(bytes + i);
        // Most significant first: the last limb of this quarter comes first.
        value.limb[11 - 4 * i] = __byte_perm(words.x, 0, 0x0123);
        value.limb[10 - 4 * i] = __byte_perm(words.y, 0, 0x0123);
        value.limb[9 - 4 * i] = __byte_perm(words.z, 0, 0x0123);
        value.limb[8 - 4 * i] = __byte_perm(words.w, 0, 0x0123);
    }
    return value;
}

__device__ __forceinline__ u32 flag_fault(u32 top_limb) {
    if (top_limb >> 29 == 0) return 0;
    if (top_limb >> 31 != 0) return COMPRESSED;
    return (top_limb >> 30 & 1) != 0 ? INFINITE : STRAY_FLAG;
}

// To Montgomery form; false if it was not below p.
__device__ __forceinline__ bool to_montgomery(Fp &value) {
    const bool canonical = value.below_p() == value;
    value = value.to_montgomery();
    return canonical;
}

// A coordinate at `bytes`; `top` gets the limb that has the flags.
__device__ __forceinline__ bool coordinate(const uint4 *bytes, Fp &value, u32 &top) {
    value = big_endian(bytes);
    top = value.limb[11];
    return to_montgomery(value);
}

__device__ __forceinline__ bool coordinate(const uint4 *bytes, Fp2 &value, u32 &top) {
    value.c1 = big_endian(bytes);
    value.c0 = big_endian(bytes + 3);
    top = value.c1.limb[11];
    const bool high = to_montgomery(value.c1), low = to_montgomery(value.c0);
    return high && low;
}

// One thread a point, blocks of 256; reads and writes 96 bytes a point in G1, 192 in G2. A thread
// reads its bytes 16 at a time; a warp's reads fill whole lines between them. Two products a base
// field element: far above what a bus delivers, so it is not tuned further.
template <class F>
__device__ __forceinline__ void decode_points(const DecodeParams<F> &p) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= p.len) return;
    constexpr int PIECES = sizeof(F) / sizeof(uint4);
    const uint4 *bytes = p.encoded + u64(i) * (2 * PIECES);
    Affine<F> point;
    u32 top, unused;
    bool canonical = coordinate(bytes, point.x, top);
    canonical = coordinate(bytes + PIECES, point.y, unused) && canonical;

    u32 fault = flag_fault(top);
    if (fault == 0 && !canonical) fault = NOT_CANONICAL;
    if (fault == 0 && point.is_infinity()) fault = INFINITE;
    if (fault == 0 && p.check_curve != 0 && !is_on_curve(point)) fault = NOT_ON_CURVE;
    if (fault != 0) {
        atomicMin(p.fault, (p.first_index + i) << 8 | fault);
        point = Affine<F>::infinity();
    }
    p.points[i] = point;
}

template <class F>
struct CheckParams {
    const Affine<F> *source;  // len points of the file
    Affine<F> *points;        // where those of the section go
    u64 *fault;               // as in DecodeParams
    u64 first_index;          // of the first point in its section
    u32 len;
    u32 reversed_bits;   // other than 0: point i goes to the place whose number has i's bits reversed
    u32 allow_infinity;  // whether zeros are a point
};

__device__ __forceinline__ bool is_canonical(const Fp &value) { return value.below_p() == value; }
__device__ __forceinline__ bool is_canonical(const Fp2 &value) {
    return is_canonical(value.c0) && is_canonical(value.c1);
}

// Points of a prepared key, which are Montgomery already: refuses coordinates that are not reduced
// and points off the curve, and puts the others in their places.
// One thread a point, blocks of 256; reads and writes 96 bytes a point in G1, 192 in G2.
template <class F>
__device__ __forceinline__ void check_points(const CheckParams<F> &p) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= p.len) return;
    Affine<F> point = p.source[i];
    u32 fault = 0;
    if (!is_canonical(point.x) || !is_canonical(point.y)) {
        fault = NOT_CANONICAL;
    } else if (point.is_infinity()) {
        if (p.allow_infinity == 0) fault = INFINITE;
    } else if (!is_on_curve(point)) {
        fault = NOT_ON_CURVE;
    }
    if (fault != 0) {
        atomicMin(p.fault, (p.first_index + i) << 8 | fault);
        point = Affine<F>::infinity();
    }
    const u64 index = p.first_index + i;
    const u32 place = p.reversed_bits == 0 ? u32(index) : __brev(u32(index)) >> (32 - p.reversed_bits);
    p.points[place] = point;
}

template <class F>
struct GatherParams {
    const Affine<F> *source;
    const u32 *indices;
    Affine<F> *points;
    u32 len;
};

// points[i] = source[indices[i]]. One thread a point, blocks of 256.
template <class F>
__device__ __forceinline__ void gather_points(const GatherParams<F> &p) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.len) p.points[i] = p.source[p.indices[i]];
}

}  // namespace cuzk
