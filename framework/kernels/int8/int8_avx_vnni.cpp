// Int8 products on AVX-VNNI: vpdpbusd on vectors of 32 bytes.
#include <hwy/base.h>

#include <bit>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/int8/int8_kernels.hpp"

#if defined(__x86_64__) && !defined(LACUNA_WITHOUT_INT8_AVX_VNNI)
#include <immintrin.h>

HWY_PUSH_ATTRIBUTES("avx,avx2,fma,avxvnni")
namespace lacuna {
namespace {

#include "lacuna/framework/kernels/int8/int8_lanes8.inc"

struct Lanes : EightLanes {
  static HWY_INLINE I dot_of(I sum, I bytes, I word) {
    return _mm256_dpbusd_avx_epi32(sum, bytes, word);
  }
  static HWY_INLINE I dot(I sum, const uint8_t* at, I word) {
    return dot_of(sum, load_line(at), word);
  }
};

#include "lacuna/framework/kernels/int8/int8_loops.inc"

}  // namespace

constinit const internal::Int8Kernels internal::kAvxVnniInt8 =
    kernels_of_lanes("avx-vnni", /*splits_words=*/false, /*group_nonzeros=*/1.0,
                     /*few_examples=*/3);

}  // namespace lacuna
HWY_POP_ATTRIBUTES
#endif
