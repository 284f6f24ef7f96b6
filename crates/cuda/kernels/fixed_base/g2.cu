// Multiples of a point of G2.

#include "fixed_base/multiply.cuh"

namespace cuzk {

CUZK_KERNEL(fixed_base_g2_kernel, FIXED_BASE_THREADS, 2, FixedBaseParams<Fp2>) { multiply_base(p); }

}  // namespace cuzk
