// Int8 products on AVX-512 with VNNI: vpdpbusd on vectors of 64 bytes, two rows at a time.
#include <hwy/base.h>

#include <bit>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/int8/int8_kernels.hpp"

#if defined(__x86_64__) && !defined(LACUNA_WITHOUT_INT8_AVX512_VNNI)
#include <immintrin.h>

HWY_PUSH_ATTRIBUTES("avx,avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
namespace lacuna {
namespace {

struct Lanes {
  using F = __m512;
  using I = __m512i;
  static constexpr int kLanes = 16, kRows = 2;
  static constexpr int kTileLines = 16;  // of a convolution

  static HWY_INLINE F set(float x) { return _mm512_set1_ps(x); }
  static HWY_INLINE I set_int(int32_t x) { return _mm512_set1_epi32(x); }
  static HWY_INLINE F load(const float* at) { return _mm512_loadu_ps(at); }
  static HWY_INLINE I load_int(const int32_t* at) { return _mm512_loadu_si512(at); }
  static HWY_INLINE void store(F x, float* at) { _mm512_storeu_ps(at, x); }
  static HWY_INLINE void store_int(I x, int32_t* at) { _mm512_storeu_si512(at, x); }
  static HWY_INLINE F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static HWY_INLINE F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static HWY_INLINE F div(F a, F b) { return _mm512_div_ps(a, b); }
  static HWY_INLINE F add(F a, F b) { return _mm512_add_ps(a, b); }
  static HWY_INLINE F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static HWY_INLINE F max(F a, F b) { return _mm512_max_ps(a, b); }
  static HWY_INLINE F min(F a, F b) { return _mm512_min_ps(a, b); }
  static HWY_INLINE F abs(F x) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x); }
  static HWY_INLINE F if_negative(F x, F yes, F no) {
    return _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(x)), no, yes);
  }
  static HWY_INLINE F to_float(I x) { return _mm512_cvtepi32_ps(x); }
  static HWY_INLINE I to_int(F x) { return _mm512_cvtps_epi32(x); }
  static HWY_INLINE F from_bits(I x) { return _mm512_castsi512_ps(x); }
  static HWY_INLINE I bits(F x) { return _mm512_castps_si512(x); }
  static HWY_INLINE I add_int(I a, I b) { return _mm512_add_epi32(a, b); }
  static HWY_INLINE I sub_int(I a, I b) { return _mm512_sub_epi32(a, b); }
  static HWY_INLINE I mul_int(I a, I b) { return _mm512_mullo_epi32(a, b); }
  static HWY_INLINE I and_int(I a, I b) { return _mm512_and_si512(a, b); }
  static HWY_INLINE I or_int(I a, I b) { return _mm512_or_si512(a, b); }
  template <int n>
  static HWY_INLINE I shift_left(I x) {
    return _mm512_slli_epi32(x, n);
  }
  template <int n>
  static HWY_INLINE I shift_right(I x) {  // zeros come in
    return _mm512_srli_epi32(x, n);
  }

  using Four = __m512i;
  static HWY_INLINE Four load_four(const int32_t* at) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  template <int i>
  static HWY_INLINE I spread(Four four) {
    return _mm512_shuffle_epi32(four, static_cast<_MM_PERM_ENUM>(i * 0x55));
  }
  static HWY_INLINE I load_line(const uint8_t* at) { return _mm512_loadu_si512(at); }
  static HWY_INLINE I dot_of(I sum, I bytes, I word) {
    return _mm512_dpbusd_epi32(sum, bytes, word);
  }
  static HWY_INLINE I dot(I sum, const uint8_t* at, I word) {
    return dot_of(sum, load_line(at), word);
  }
  static constexpr int kCellVectors = 4;
  // For each byte of a quad its place in another quad, or 0x80: for select.
  using Places = I;
  static HWY_INLINE Places load_places(uint32_t bytes) {
    const I lane = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
    return _mm512_add_epi8(_mm512_set1_epi32(static_cast<int32_t>(bytes)), lane);
  }
  static HWY_INLINE I select(I bytes, Places places) { return _mm512_shuffle_epi8(bytes, places); }
  // 32 quads, of which lanes take those at their places.
  struct Table {
    __m512i low, high;
  };
  static HWY_INLINE Table load_table(const uint8_t* at) {
    return {load_line(at), load_line(at + 64)};
  }
  static HWY_INLINE I lookup(const Table& table, const uint8_t* places) {
    return _mm512_permutex2var_epi32(table.low, load_bytes(places), table.high);
  }
  static HWY_INLINE I load_word(const int32_t* at) { return load_int(at); }
  // Of lanes from 0 to 255.
  static HWY_INLINE void store_bytes(I x, uint8_t* at) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at), _mm512_cvtepi32_epi8(x));
  }
  static HWY_INLINE I load_bytes(const uint8_t* at) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  static HWY_INLINE void store_quads(I x, uint8_t* at) { _mm512_storeu_si512(at, x); }
};

#include "lacuna/framework/kernels/int8/int8_loops.inc"

}  // namespace

constinit const internal::Int8Kernels internal::kAvx512VnniInt8 = kernels_of_lanes(
    "avx512-vnni", /*splits_words=*/false, /*group_nonzeros=*/1.0, /*few_examples=*/6);

}  // namespace lacuna
HWY_POP_ATTRIBUTES
#endif
