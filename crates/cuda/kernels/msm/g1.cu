// Group sums over G1.

#include "msm/multiples.cuh"
#include "msm/rounds.cuh"
#include "msm/sums.cuh"

namespace cuzk {

CUZK_KERNEL(msm_copy_singles_g1_kernel, FOLD_THREADS, 4, CopySinglesParams<Fp>) { copy_singles(p); }

CUZK_KERNEL(msm_fold_bases_g1_kernel, FOLD_THREADS, 4, FoldBasesParams<Fp>) {
    fold_pairs<Fp>(p.operands, *p.pairs, p.scratch);
}

CUZK_KERNEL(msm_fold_slots_g1_kernel, FOLD_THREADS, 4, FoldSlotsParams<Fp>) {
    fold_pairs<Fp>(p.operands, *p.pairs, p.scratch);
}

CUZK_KERNEL(msm_fold_buckets_g1_kernel, FOLD_THREADS, 4, FoldBucketsParams<Fp>) { fold_buckets(p); }

CUZK_KERNEL(msm_fold_grid_g1_kernel, FOLD_THREADS, 4, FoldGridParams<Fp>) { fold_grid(p); }

CUZK_KERNEL(msm_fold_selected_g1_kernel, FOLD_THREADS, 4, FoldChosenParams<Fp>) { fold_selected(p); }

CUZK_KERNEL(msm_fold_halves_g1_kernel, FOLD_THREADS, 4, FoldChosenParams<Fp>) { fold_halves(p); }

CUZK_KERNEL(msm_sum_lines_g1_kernel, SUM_THREADS, 1, SumLinesParams<Fp>) { sum_lines(p); }

CUZK_KERNEL(msm_sum_bits_g1_kernel, SUM_THREADS, 1, SumBitsParams<Fp>) { sum_bits(p); }

CUZK_KERNEL(msm_sum_points_g1_kernel, SUM_THREADS, 1, SumPointsParams<Fp>) { sum_points(p); }

CUZK_KERNEL(msm_multiples_g1_kernel, FOLD_THREADS, 4, MultiplesParams<Fp>) {
    multiply_by_power_of_two(p);
}

CUZK_KERNEL(msm_reduce_points_g1_kernel, FOLD_THREADS, 4, ReducePointsParams<Fp>) {
    reduce_points(p);
}

}  // namespace cuzk
