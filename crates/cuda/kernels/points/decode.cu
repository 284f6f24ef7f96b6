// Decoding, checking and choosing of a key's points: see decode.cuh.

#include "points/decode.cuh"

namespace cuzk {

CUZK_KERNEL(decode_g1, 256, 2, DecodeParams<Fp>) { decode_points(p); }
CUZK_KERNEL(decode_g2, 256, 1, DecodeParams<Fp2>) { decode_points(p); }

CUZK_KERNEL(check_g1, 256, 1, CheckParams<Fp>) { check_points(p); }

CUZK_KERNEL(check_g2, 256, 1, CheckParams<Fp2>) { check_points(p); }

CUZK_KERNEL(gather_g1, 256, 1, GatherParams<Fp>) { gather_points(p); }

CUZK_KERNEL(gather_g2, 256, 1, GatherParams<Fp2>) { gather_points(p); }

}  // namespace cuzk
