// The product over batch slabs. What makes it fast is explained in docs/kernels.md.
//
// Loads are the bottleneck: beside a 64-byte load of activations even a 4-byte index costs half a
// cycle. So four offsets come with one 64-bit load, and four values with one 16-byte load that is
// replicated to all lanes and spread by in-lane broadcasts.
#include "lacuna/framework/kernels/csr/csr.h"

#include <algorithm>
#include <utility>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/csr/csr_reference.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "lacuna/framework/kernels/simd/slab.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/csr/csr.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/csr/csr_run.inc"

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
void product_block(const CsrStream& s, const CsrBlock& block, const float* values, const float* x,
                   int64_t width, const float* bias, float* y, bool) {
  reference::csr_product_block(s, block, values, x, width, bias, y, false);
}
#else

// acc[r] += value · x for entry `i` of four in each of the rows.
template <int i, int kVectors, int kRows>
HWY_INLINE void multiply_add(const char* x, const uint64_t (&words)[kRows],
                             const Vector (&values)[kRows], Vector (&acc)[kRows][kVectors]) {
  for (int r = 0; r < kRows; ++r) {
    const Vector value = hn::Broadcast<i>(values[r]);
    const char* row = x + row_offset<i>(words[r]);
    for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(value, load(row, v), acc[r][v]);
  }
}

// kRows rows from row i of the group on.
template <int kVectors, int kRows, int kLength, bool kFirst>
HWY_INLINE void product_rows(const Run& run, int64_t i) {
  const int64_t length = length_of<kLength>(run);
  Vector acc[kRows][kVectors];
  char* y[kRows];
  const uint16_t* offsets[kRows];
  const float* values[kRows];
  for (int r = 0; r < kRows; ++r) {
    const uint32_t row = run.rows[i + r];
    y[r] = run.y + row * kSlabRowBytes;
    offsets[r] = run.offsets + (i + r) * length;
    values[r] = run.values + (i + r) * length;
    const char* ahead = run.y + run.rows[i + r + 2 * kRows] * kSlabRowBytes;
    for (int v = 0; v < kVectors * kVectorBytes; v += 64) __builtin_prefetch(ahead + v, 1);
    if (run.next_slab != 0) {
      for (int v = 0; v < kSlabRowBytes; v += 64)
        __builtin_prefetch(y[r] + run.next_slab + v, 1, 2);
    }
    if constexpr (kFirst) {
      const Vector start = hn::Set(Floats(), run.bias == nullptr ? 0.0f : run.bias[row]);
      for (int v = 0; v < kVectors; ++v) acc[r][v] = start;
    } else {
      for (int v = 0; v < kVectors; ++v) acc[r][v] = load(y[r], v);
    }
  }
  uint64_t words[kRows];
  Vector quads[kRows];
  const auto fetch = [&](int64_t at) HWY_ATTR {
    for (int r = 0; r < kRows; ++r) {
      words[r] = packed(offsets[r] + at);
      quads[r] = hn::LoadDup128(Floats(), values[r] + at);
    }
  };
  const auto four = [&](int64_t at) HWY_ATTR {
    fetch(at);
    multiply_add<0>(run.x, words, quads, acc);
    multiply_add<1>(run.x, words, quads, acc);
    multiply_add<2>(run.x, words, quads, acc);
    multiply_add<3>(run.x, words, quads, acc);
  };
  const auto rest = [&](int64_t at, int64_t count) HWY_ATTR {
    if (count == 0) return;
    fetch(at);
    multiply_add<0>(run.x, words, quads, acc);
    if (count > 1) multiply_add<1>(run.x, words, quads, acc);
    if (count > 2) multiply_add<2>(run.x, words, quads, acc);
  };
  if constexpr (kLength >= 0) {
    HWY_UNROLL(8)
    for (int64_t at = 0; at < kLength / 4 * 4; at += 4) four(at);
    rest(kLength / 4 * 4, kLength % 4);
  } else {
    const int64_t whole = length / 4 * 4;
    for (int64_t at = 0; at < whole; at += 4) four(at);
    rest(whole, -1 - kLength);
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) store(acc[r][v], y[r], v);
  }
}

// kLength: nonzeros of each row, or −1 − (length % 4).
template <int kVectors, int kLength, bool kFirst>
HWY_NOINLINE void product_group(const Run& run) {
  constexpr int kRows = kVectors <= 4 ? 2 : 1;
  int64_t i = 0;
  const char* ahead = run.ahead;
  for (; i + kRows <= run.count; i += kRows) {
    for (int64_t line = 0; line < run.ahead_lines; ++line, ahead += 64) {
      __builtin_prefetch(ahead, 0, 2);
    }
    product_rows<kVectors, kRows, kLength, kFirst>(run, i);
  }
  if constexpr (kRows > 1) {
    for (; i < run.count; ++i) product_rows<kVectors, 1, kLength, kFirst>(run, i);
  }
}

template <int kVectors, int kLength, bool kFirst>
struct Product {
  static void run(const Run& r) { product_group<kVectors, kLength, kFirst>(r); }
};
void product_block(const CsrStream& s, const CsrBlock& block, const float* values, const float* x,
                   int64_t width, const float* bias, float* y, bool prefetch_next) {
  const int64_t next_slab = prefetch_next ? s.rows * kSlabRowBytes : 0;
  for (int64_t c = 0; c < width; c += kPass * kLanes) {
    with_vectors(width - c, [&]<int n>(Vectors<n>) HWY_ATTR {
      const Run run{.x = reinterpret_cast<const char*>(x + c),
                    .y = reinterpret_cast<char*>(y + c),
                    .bias = bias,
                    .values = values,
                    .next_slab = next_slab};
      for_each_group(s, block, run, [](const Run& r, bool is_first) HWY_ATTR {
        (is_first ? choose<Product, n, true>(r.length) : choose<Product, n, false>(r.length))(r);
      });
    });
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(product_block);

}  // namespace

void csr_product(const CsrStream& s, const float* values, const float* x, int64_t batch,
                 const float* bias, float* y) {
  const auto run =
      use_reference_kernels() ? reference::csr_product_block : HWY_DYNAMIC_DISPATCH(product_block);
  const int64_t slabs = slab_count(batch);
  const bool is_large = slabs_exceed_cache(s.rows, s.columns, slabs);
  const auto blocks = static_cast<int64_t>(s.blocks.size());
  parallel_blocks(slabs * blocks, [&](int64_t unit) {
    const int64_t slab = unit / blocks;
    run(s, s.blocks[static_cast<size_t>(unit % blocks)], values, x + slab * s.columns * kSlabWidth,
        std::min(kSlabWidth, batch - slab * kSlabWidth), bias, y + slab * s.rows * kSlabWidth,
        is_large && slab + 1 < slabs);
  });
}

void gather(std::span<const float> from, std::span<const uint32_t> place, std::span<float> into) {
  parallel_for(static_cast<int64_t>(into.size()), 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      into[static_cast<size_t>(i)] = from[place[static_cast<size_t>(i)]];
    }
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
