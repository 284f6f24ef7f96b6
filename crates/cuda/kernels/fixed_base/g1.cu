// Multiples of a point of G1.

#include "fixed_base/multiply.cuh"

namespace cuzk {

CUZK_KERNEL(fixed_base_g1_kernel, FIXED_BASE_THREADS, 3, FixedBaseParams<Fp>) { multiply_base(p); }

}  // namespace cuzk
