// The operations of Fp, Fr and Fp2, to be compared with blst's: see field.cuh.

#include "laws/field.cuh"

namespace cuzk {

CUZK_KERNEL(laws_fp, 256, 1, FieldLawsParams<Fp>) { field_laws(p); }
CUZK_KERNEL(laws_fr, 256, 1, FieldLawsParams<Fr>) { field_laws(p); }
CUZK_KERNEL(laws_fp2, 256, 1, FieldLawsParams<Fp2>) { field_laws(p); }

}  // namespace cuzk
