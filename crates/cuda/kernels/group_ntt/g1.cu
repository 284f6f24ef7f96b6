// Transforms of points of G1.

#include "group_ntt/pass.cuh"

namespace cuzk {

CUZK_KERNEL(group_ntt_permute, GROUP_NTT_THREADS, 1, PermuteParams) { permute_points(p); }

CUZK_KERNEL(group_ntt_table, GROUP_NTT_THREADS, 4, TableParams) { multiples_table(p); }

CUZK_KERNEL(group_ntt_multiply, GROUP_NTT_THREADS, 4, TwiddleParams) { multiply_by_twiddles(p); }

CUZK_KERNEL(group_ntt_rotate, GROUP_NTT_THREADS, 4, RotateParams) { rotate_differences(p); }

CUZK_KERNEL(group_ntt_combine, GROUP_NTT_THREADS, 4, CombineParams) { combine_points(p); }

}  // namespace cuzk
