// What the comparison needs of the crate sppark, which ships headers only, as C functions.
//
// Points, scalars and values are in device memory already: affine points in Montgomery form,
// canonical scalars, values in Montgomery form. Every function returns 0 or a CUDA error code, and
// lets no exception out.

#pragma once

#include <util/exception.cuh>
#include <util/rusterror.h>
#include <util/gpu_t.cuh>

// A device address that its owner keeps.
template <class T>
struct borrowed_ptr {
    T *address;
    T &operator[](size_t i) const { return address[i]; }
};

template <class T>
struct is_device_ptr<borrowed_ptr<T>> {
    static const bool value{true};
};

// Runs `body`, which returns a CUDA error code, and turns what it throws into one.
template <class Body>
static int guarded(Body body) noexcept {
    try {
        return body();
    } catch (const cuda_error &error) {
        return error.code() != 0 ? error.code() : cudaErrorUnknown;
    } catch (...) {
        return cudaErrorUnknown;
    }
}

// Time on a stream by events.
class Timer {
    cudaStream_t stream;
    cudaEvent_t start, end;

  public:
    explicit Timer(cudaStream_t stream) : stream(stream) {
        CUDA_OK(cudaEventCreate(&start));
        CUDA_OK(cudaEventCreate(&end));
        CUDA_OK(cudaEventRecord(start, stream));
    }
    Timer(const Timer &) = delete;

    // Milliseconds since the timer was made; waits for the stream.
    float stop() {
        float ms = 0;
        CUDA_OK(cudaEventRecord(end, stream));
        CUDA_OK(cudaEventSynchronize(end));
        CUDA_OK(cudaEventElapsedTime(&ms, start, end));
        return ms;
    }

    ~Timer() {
        (void)cudaEventDestroy(start);
        (void)cudaEventDestroy(end);
    }
};

// The MSM of one group: buckets are allocated when it is made, as sppark's callers do for bases that
// stay.
template <class Bucket, class Point, class Point_affine, class Scalar>
struct Sum {
    using Msm = msm_t<Bucket, Point, Point_affine, Scalar>;

    // Buckets for sums of `len` points. sppark sizes them by the points that it is given and takes
    // their address only if it is to copy them; with none it assumes 17-bit windows.
    static int create(void **out, size_t len) noexcept {
        return guarded([&] {
            *out = new Msm(nullptr, len);
            return 0;
        });
    }

    static int run(void *sum, void *out, void *points, void *scalars, size_t len) noexcept {
        return guarded([&] {
            auto &msm = *static_cast<Msm *>(sum);
            Point result;
            // Of Point_affine, whose address alone is taken: with the points' stored form in its place
            // the overload for device memory would choose itself again, for ever.
            RustError error =
                msm.invoke(result, borrowed_ptr<Point_affine>{static_cast<Point_affine *>(points)}, len,
                           borrowed_ptr<Scalar>{static_cast<Scalar *>(scalars)}, false);
            if (error.code == 0) *static_cast<Point *>(out) = result;
            return error.code;
        });
    }

    static int destroy(void *sum) noexcept {
        return guarded([&] {
            delete static_cast<Msm *>(sum);
            return 0;
        });
    }
};
