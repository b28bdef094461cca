// Int8 products on AVX-VNNI: vpdpbusd on vectors of 32 bytes.
#include <hwy/base.h>

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

#include "lacuna/framework/kernels/int8/int8_run.inc"

// What stands on the first.
#include "lacuna/framework/kernels/int8/int8_cells.inc"
#include "lacuna/framework/kernels/int8/int8_rows.inc"
#include "lacuna/framework/kernels/int8/int8_taps.inc"
// What stands on the last.
#include "lacuna/framework/kernels/int8/int8_pixels.inc"

}  // namespace

const internal::Int8Kernels internal::kAvxVnniInt8 = {"avx-vnni",
                                                      false,
                                                      run_product,
                                                      run_cells,
                                                      run_quantize,
                                                      run_ranges,
                                                      run_convolve,
                                                      run_quantize_lines,
                                                      run_line_ranges,
                                                      2,
                                                      run_few,
                                                      run_quantize_row,
                                                      8,
                                                      run_pixels};

}  // namespace lacuna
HWY_POP_ATTRIBUTES
#endif
