// The operations of G2, to be compared with blst's: see group.cuh.

#include "laws/group.cuh"

namespace cuzk {

CUZK_KERNEL(laws_g2, 128, 1, GroupLawsParams<Fp2>) { group_laws(p); }

}  // namespace cuzk
