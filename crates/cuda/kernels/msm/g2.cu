// Group sums over G2: the same formulas over Fp2, with two blocks on a multiprocessor for its registers.

#include "msm/multiples.cuh"
#include "msm/rounds.cuh"
#include "msm/sums.cuh"

namespace cuzk {

CUZK_KERNEL(msm_copy_singles_g2_kernel, FOLD_THREADS, 2, CopySinglesParams<Fp2>) { copy_singles(p); }

CUZK_KERNEL(msm_fold_bases_g2_kernel, FOLD_THREADS, 2, FoldBasesParams<Fp2>) {
    fold_pairs<Fp2>(p.operands, *p.pairs, p.scratch);
}

CUZK_KERNEL(msm_fold_slots_g2_kernel, FOLD_THREADS, 2, FoldSlotsParams<Fp2>) {
    fold_pairs<Fp2>(p.operands, *p.pairs, p.scratch);
}

CUZK_KERNEL(msm_fold_buckets_g2_kernel, FOLD_THREADS, 2, FoldBucketsParams<Fp2>) { fold_buckets(p); }

CUZK_KERNEL(msm_fold_grid_g2_kernel, FOLD_THREADS, 2, FoldGridParams<Fp2>) { fold_grid(p); }

CUZK_KERNEL(msm_fold_selected_g2_kernel, FOLD_THREADS, 2, FoldChosenParams<Fp2>) { fold_selected(p); }

CUZK_KERNEL(msm_fold_halves_g2_kernel, FOLD_THREADS, 2, FoldChosenParams<Fp2>) { fold_halves(p); }

CUZK_KERNEL(msm_sum_lines_g2_kernel, SUM_THREADS, 1, SumLinesParams<Fp2>) { sum_lines(p); }

CUZK_KERNEL(msm_sum_bits_g2_kernel, SUM_THREADS, 1, SumBitsParams<Fp2>) { sum_bits(p); }

CUZK_KERNEL(msm_sum_points_g2_kernel, SUM_THREADS, 1, SumPointsParams<Fp2>) { sum_points(p); }

CUZK_KERNEL(msm_multiples_g2_kernel, FOLD_THREADS, 2, MultiplesParams<Fp2>) {
    multiply_by_power_of_two(p);
}

CUZK_KERNEL(msm_reduce_points_g2_kernel, FOLD_THREADS, 2, ReducePointsParams<Fp2>) {
    reduce_points(p);
}

}  // namespace cuzk
