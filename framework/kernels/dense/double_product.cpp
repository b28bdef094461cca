// A tile of C processes 128 of the k at a time. B's part is packed into panels as wide as a
// register tile, A's into groups of four rows, padded with zeros, so that there is one loop. A
// panel of B (32 KiB with AVX-512) stays in the first-level cache for all groups of A.
#include "lacuna/framework/kernels/dense/double_product.hpp"

#include <algorithm>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/dense/double_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef LACUNA_DOUBLE_PRODUCT
#define LACUNA_DOUBLE_PRODUCT
namespace lacuna {
namespace {

// Sizes of a part of the result. Each thread packs a tile's rows: 128 KiB.
constexpr int64_t kTileRows = 128, kTileColumns = 256, kDepth = 128, kGroup = 4;

struct Packed {
  std::vector<double> a, b;
};

}  // namespace
}  // namespace lacuna
#endif

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Doubles = hn::ScalableTag<double>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Doubles()));
constexpr int kVectors = kLanes == 8 ? 4 : 3;  // with 16 registers, twelve of them sums
constexpr int64_t kPanel = kLanes * kVectors;

// Packs a strip of `count` ≤ width lines as [depth][width]; element (line, l) is at from[line ·
// line_step + l · depth_step].
HWY_INLINE void pack_strip(const double* from, int64_t count, int64_t width, int64_t depth,
                           int64_t line_step, int64_t depth_step, double* to) {
  for (int64_t l = 0; l < depth; ++l, to += width, from += depth_step) {
    for (int64_t line = 0; line < count; ++line) to[line] = from[line * line_step];
    for (int64_t line = count; line < width; ++line) to[line] = 0.0;
  }
}

// c[kGroup][kPanel] = the product of a group and a panel.
HWY_INLINE void multiply(const double* HWY_RESTRICT a, const double* HWY_RESTRICT b, int64_t depth,
                         double* HWY_RESTRICT c) {
  const Doubles d;
  hn::Vec<Doubles> sums[kGroup][kVectors];
  for (int r = 0; r < kGroup; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  for (int64_t l = 0; l < depth; ++l, a += kGroup, b += kPanel) {
    hn::Vec<Doubles> in[kVectors];
    for (int v = 0; v < kVectors; ++v) in[v] = hn::LoadU(d, b + v * kLanes);
    for (int r = 0; r < kGroup; ++r) {
      const auto factor = hn::Set(d, a[r]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, in[v], sums[r][v]);
    }
  }
  for (int r = 0; r < kGroup; ++r) {
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, c + r * kPanel + v * kLanes);
  }
}

// One tile of C: m × n elements of the product, from row i and column j on.
int64_t PanelWidth() { return kPanel; }

void AddTile(const DoubleProduct& p, int64_t i, int64_t j, int64_t m, int64_t n, Packed& packed) {
  const bool ta = p.transpose_a == Transpose::Yes, tb = p.transpose_b == Transpose::Yes;
  HWY_ALIGN double part[kGroup * kPanel];
  for (int64_t k = 0; k < p.k; k += kDepth) {
    const int64_t depth = std::min(kDepth, p.k - k);
    for (int64_t r = 0; r < m; r += kGroup) {
      const double* from = p.a + (ta ? k * p.lda + i + r : (i + r) * p.lda + k);
      pack_strip(from, std::min(kGroup, m - r), kGroup, depth, ta ? 1 : p.lda, ta ? p.lda : 1,
                 packed.a.data() + r * depth);
    }
    for (int64_t c = 0; c < n; c += kPanel) {
      const double* from = p.b + (tb ? (j + c) * p.ldb + k : k * p.ldb + j + c);
      const int64_t width = std::min(kPanel, n - c);
      pack_strip(from, width, kPanel, depth, tb ? p.ldb : 1, tb ? 1 : p.ldb, packed.b.data());
      for (int64_t r = 0; r < m; r += kGroup) {
        multiply(packed.a.data() + r * depth, packed.b.data(), depth, part);
        for (int64_t row = r; row < std::min(r + kGroup, m); ++row) {
          double* into = p.c + (i + row) * p.ldc + j + c;
          const double* of = part + (row - r) * kPanel;
          for (int64_t column = 0; column < width; ++column) into[column] += p.alpha * of[column];
        }
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(AddTile);
HWY_EXPORT(PanelWidth);

void add_tile_reference(const DoubleProduct& p, int64_t i, int64_t j, int64_t m, int64_t n) {
  const bool ta = p.transpose_a == Transpose::Yes, tb = p.transpose_b == Transpose::Yes;
  for (int64_t r = i; r < i + m; ++r) {
    for (int64_t c = j; c < j + n; ++c) {
      double sum = 0.0;
      for (int64_t l = 0; l < p.k; ++l) {
        sum += p.a[ta ? l * p.lda + r : r * p.lda + l] * p.b[tb ? c * p.ldb + l : l * p.ldb + c];
      }
      p.c[r * p.ldc + c] += p.alpha * sum;
    }
  }
}

}  // namespace

void add_product(const DoubleProduct& p) {
  if (p.m == 0 || p.n == 0 || p.k == 0) return;
  const int64_t down = (p.m + kTileRows - 1) / kTileRows;
  const int64_t across = (p.n + kTileColumns - 1) / kTileColumns;
  const bool reference = use_reference_kernels();
  parallel_blocks(down * across, [&](int64_t index) {
    const int64_t i = index / across * kTileRows, j = index % across * kTileColumns;
    const int64_t m = std::min(kTileRows, p.m - i), n = std::min(kTileColumns, p.n - j);
    if (reference) {
      add_tile_reference(p, i, j, m, n);
      return;
    }
    const auto depth = static_cast<size_t>(std::min(kDepth, p.k));
    const auto rows = static_cast<size_t>((m + kGroup - 1) / kGroup * kGroup);
    const auto width = static_cast<size_t>(HWY_DYNAMIC_DISPATCH(PanelWidth)());
    Packed packed{.a = std::vector<double>(rows * depth), .b = std::vector<double>(width * depth)};
    HWY_DYNAMIC_DISPATCH(AddTile)(p, i, j, m, n, packed);
  });
}

}  // namespace lacuna
#endif  // HWY_ONCE
