// Int8 products on AVX2: vpmaddubsw adds two products in 16 bits, so 255 · (|v| + |w|) must fit.
// Words with a pair above 128 are split (Int8Kernels::splits_words). This is exact, and takes half
// the instructions of products that are first widened to 16 bits.
#include <hwy/base.h>

#include <bit>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/int8/int8_kernels.hpp"

#if defined(__x86_64__) && !defined(LACUNA_WITHOUT_INT8_AVX2)
#include <immintrin.h>

HWY_PUSH_ATTRIBUTES("avx,avx2,fma")
namespace lacuna {
namespace {

#include "lacuna/framework/kernels/int8/int8_lanes8.inc"

struct Lanes : EightLanes {
  static HWY_INLINE I dot_of(I sum, I bytes, I word) {
    const I pairs = _mm256_maddubs_epi16(bytes, word);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  static HWY_INLINE I dot(I sum, const uint8_t* at, I word) {
    return dot_of(sum, load_line(at), word);
  }
};

#include "lacuna/framework/kernels/int8/int8_loops.inc"

}  // namespace

constinit const internal::Int8Kernels internal::kAvx2Int8 =
    kernels_of_lanes("avx2", /*splits_words=*/true, /*group_nonzeros=*/1.8, /*few_examples=*/3);

}  // namespace lacuna
HWY_POP_ATTRIBUTES
#endif
