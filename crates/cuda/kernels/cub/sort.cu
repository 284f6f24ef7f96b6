// CUB's device-wide sort and scan behind C functions.
//
// They run in the caller's current context, on its stream, in its temporary memory, and allocate
// nothing. They return a cudaError_t, or TEMP_TOO_SMALL when CUB wants more temporary memory than
// it is given; no exception leaves them.

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include <cstddef>
#include <cstdint>

namespace {

constexpr int TEMP_TOO_SMALL = -1;
constexpr int EXCEPTION = -2;

// Asks `call` (temp, bytes&) what it needs, then runs it if `temp_bytes` are enough.
template <typename Call>
int run(void *temp, size_t temp_bytes, Call call) noexcept {
    try {
        size_t needed = 0;
        cudaError_t error = call(nullptr, needed);
        if (error != cudaSuccess) return error;
        if (needed > temp_bytes) return TEMP_TOO_SMALL;
        error = call(temp, needed);
        // A launch that was refused must not surface in somebody else's call.
        const cudaError_t launch = cudaGetLastError();
        return error != cudaSuccess ? error : launch;
    } catch (...) {
        return EXCEPTION;
    }
}

template <typename T>
int exclusive_sum(void *temp, size_t temp_bytes, const T *in, T *out, uint32_t len,
                  cudaStream_t stream) {
    return run(temp, temp_bytes, [=](void *storage, size_t &bytes) {
        return cub::DeviceScan::ExclusiveSum(storage, bytes, in, out, len, stream);
    });
}

}  // namespace

// Sorts `len` pairs by the bits begin_bit .. end_bit of their keys, ascending and stable. Pair i is
// (keys[0][i], values[0][i]); both buffers are overwritten, and *place becomes the number of
// the one that holds the result. Traffic: one read of the keys for all digits' histograms, then
// reads and writes of the 8-byte pairs for each 8-bit digit.
extern "C" int cuzk_cub_sort_pairs(void *temp, size_t temp_bytes, uint32_t *const keys[2],
                                   uint32_t *const values[2], uint32_t len, int begin_bit,
                                   int end_bit, int *place, cudaStream_t stream) {
    return run(temp, temp_bytes, [=](void *storage, size_t &bytes) {
        cub::DoubleBuffer<uint32_t> both_keys(keys[0], keys[1]);
        cub::DoubleBuffer<uint32_t> both_values(values[0], values[1]);
        const cudaError_t error = cub::DeviceRadixSort::SortPairs(
            storage, bytes, both_keys, both_values, len, begin_bit, end_bit, stream);
        *place = both_keys.selector;
        return error;
    });
}

// out[i] = in[0] + … + in[i-1] mod 2^32; `out` may be `in`.
extern "C" int cuzk_cub_exclusive_sum_u32(void *temp, size_t temp_bytes, const uint32_t *in,
                                          uint32_t *out, uint32_t len, cudaStream_t stream) {
    return exclusive_sum(temp, temp_bytes, in, out, len, stream);
}

// out[i] = in[0] + … + in[i-1] mod 2^64; `out` may be `in`.
extern "C" int cuzk_cub_exclusive_sum_u64(void *temp, size_t temp_bytes, const uint64_t *in,
                                          uint64_t *out, uint32_t len, cudaStream_t stream) {
    return exclusive_sum(temp, temp_bytes, in, out, len, stream);
}
