// The operations of G1, to be compared with blst's: see group.cuh.

#include "laws/group.cuh"

namespace cuzk {

CUZK_KERNEL(laws_g1, 128, 1, GroupLawsParams<Fp>) { group_laws(p); }

}  // namespace cuzk
