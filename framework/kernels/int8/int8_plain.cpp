// Int8 products in plain C++: for processors without other kernels, and the reference for these.
// Lanes are single numbers, and a slab has 64 of them.
#include <hwy/base.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/int8/int8_kernels.hpp"

namespace lacuna {
namespace {

struct Lanes {
  using F = float;
  using I = int32_t;
  static constexpr int kLanes = 1, kRows = 1;
  static constexpr int kTileLines = 1;  // of a convolution

  static F set(float x) { return x; }
  static I set_int(int32_t x) { return x; }
  static F load(const float* at) { return *at; }
  static I load_int(const int32_t* at) { return *at; }
  static void store(F x, float* at) { *at = x; }
  static void store_int(I x, int32_t* at) { *at = x; }
  static F fma(F a, F b, F c) { return std::fma(a, b, c); }
  static F mul(F a, F b) { return a * b; }
  static F div(F a, F b) { return a / b; }
  static F add(F a, F b) { return a + b; }
  static F sub(F a, F b) { return a - b; }
  static F max(F a, F b) { return a > b ? a : b; }
  static F min(F a, F b) { return a < b ? a : b; }
  static F abs(F x) { return std::abs(x); }
  static F if_negative(F x, F yes, F no) { return std::signbit(x) ? yes : no; }
  static F to_float(I x) { return static_cast<float>(x); }
  static I to_int(F x) { return static_cast<I>(std::lrint(x)); }
  static F from_bits(I x) { return std::bit_cast<float>(x); }
  static I bits(F x) { return std::bit_cast<int32_t>(x); }
  // Sums wrap around, as in vectors.
  static uint32_t u(I x) { return static_cast<uint32_t>(x); }
  static I add_int(I a, I b) { return static_cast<I>(u(a) + u(b)); }
  static I sub_int(I a, I b) { return static_cast<I>(u(a) - u(b)); }
  static I mul_int(I a, I b) { return static_cast<I>(u(a) * u(b)); }
  static I and_int(I a, I b) { return a & b; }
  static I or_int(I a, I b) { return a | b; }
  template <int n>
  static I shift_left(I x) {
    return static_cast<I>(u(x) << n);
  }
  template <int n>
  static I shift_right(I x) {
    return static_cast<I>(u(x) >> n);
  }

  using Four = const int32_t*;
  static Four load_four(const int32_t* at) { return at; }
  template <int i>
  static I spread(Four four) {
    return four[i];
  }
  static int32_t load_line(const uint8_t* at) {
    int32_t bytes;
    std::memcpy(&bytes, at, sizeof bytes);
    return bytes;
  }
  static I dot_of(I sum, int32_t bytes, I word) {
    for (int i = 0; i < 4; ++i) {
      const auto x = static_cast<int32_t>((u(bytes) >> (8 * i)) & 0xff);
      const auto w = static_cast<int8_t>((u(word) >> (8 * i)) & 0xff);
      sum = add_int(sum, x * w);
    }
    return sum;
  }
  static I dot(I sum, const uint8_t* at, I word) { return dot_of(sum, load_line(at), word); }
  static constexpr int kCellVectors = 16;
  // For each byte of a quad its place in another quad, or 0x80.
  using Places = uint32_t;
  static Places load_places(uint32_t bytes) { return bytes; }
  static I select(I bytes, Places places) {
    uint32_t selected = 0;
    for (int i = 0; i < 4; ++i) {
      const uint32_t place = (places >> (8 * i)) & 0xff;
      if (place < 4) selected |= ((u(bytes) >> (8 * place)) & 0xff) << (8 * i);
    }
    return static_cast<I>(selected);
  }
  using Table = const uint8_t*;
  static Table load_table(const uint8_t* at) { return at; }
  static int32_t lookup(Table table, const uint8_t* places) {
    return load_line(table + 4 * *places);
  }
  static I load_word(const int32_t* at) { return *at; }
  static void store_bytes(I x, uint8_t* at) { *at = static_cast<uint8_t>(x); }
  static I load_bytes(const uint8_t* at) { return *at; }
  static void store_quads(I x, uint8_t* at) { std::memcpy(at, &x, sizeof x); }
};

#include "lacuna/framework/kernels/int8/int8_loops.inc"

}  // namespace

constinit const internal::Int8Kernels internal::kPlainInt8 =
    kernels_of_lanes("plain", /*splits_words=*/false, /*group_nonzeros=*/20.0,
                     /*few_examples=*/6);

}  // namespace lacuna
