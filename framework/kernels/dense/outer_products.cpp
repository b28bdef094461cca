// Sums of four rows × four (or two) vectors of columns over the examples stay in registers, are
// then selected by the mask's bits and written: with a few examples, writing the gradient takes
// most of the time.
#include "lacuna/framework/kernels/dense/outer_products.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/instruction_set.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/framework/kernels/dense/outer_products.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/framework/kernels/simd/simd_loop.inc"

#ifndef LACUNA_OUTER_PRODUCTS
#define LACUNA_OUTER_PRODUCTS
namespace lacuna {
namespace {

struct OuterProducts {
  const uint64_t* mask = nullptr;  // by position
  int64_t batch = 0, rows = 0, columns = 0;
  const float* dy = nullptr;
  const float* x = nullptr;
  bool accumulate = false;
  float* gradient = nullptr;

  bool is_kept(int64_t position) const { return (mask[position / 64] >> (position % 64) & 1) != 0; }
};

}  // namespace
}  // namespace lacuna
#endif

HWY_BEFORE_NAMESPACE();
namespace lacuna::HWY_NAMESPACE {
namespace {

void element(const OuterProducts& p, int64_t row, int64_t column) {
  const int64_t position = row * p.columns + column;
  float sum = p.accumulate ? p.gradient[position] : 0.0f;
  for (int64_t e = 0; e < p.batch; ++e) sum += p.dy[e * p.rows + row] * p.x[e * p.columns + column];
  p.gradient[position] = p.is_kept(position) ? sum : 0.0f;
}

// The mask's bits from a position on, one per lane of a vector.
HWY_INLINE hn::Mask<Floats> bits_at(const OuterProducts& p, int64_t position) {
  constexpr int kLanes = hn::MaxLanes(Floats());
  const int64_t word = position / 64;
  const int shift = static_cast<int>(position % 64);
  uint64_t bits = p.mask[word] >> shift;
  if (shift > 64 - kLanes) bits |= p.mask[word + 1] << (64 - shift);
  uint8_t bytes[8];
  std::memcpy(bytes, &bits, sizeof bytes);
  return hn::LoadMaskBits(Floats(), bytes);
}

template <int kRows, int kVectors>
HWY_INLINE void tile(const OuterProducts& p, int64_t row, int64_t column) {
  const Floats f;
  constexpr int kLanes = hn::MaxLanes(Floats());
  Vector sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(f);
  }
  const float* dy = p.dy + row;
  const float* x = p.x + column;
  for (int64_t e = 0; e < p.batch; ++e, dy += p.rows, x += p.columns) {
    Vector in[kVectors];
    for (int v = 0; v < kVectors; ++v) in[v] = hn::LoadU(f, x + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const Vector factor = hn::Set(f, dy[r]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, in[v], sums[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const int64_t position = (row + r) * p.columns + column;
    for (int v = 0; v < kVectors; ++v) {
      float* at = p.gradient + position + v * kLanes;
      const Vector sum = p.accumulate ? hn::Add(sums[r][v], hn::LoadU(f, at)) : sums[r][v];
      hn::StoreU(hn::IfThenElseZero(bits_at(p, position + v * kLanes), sum), f, at);
    }
  }
}

template <int kRows>
HWY_INLINE void rows_of(const OuterProducts& p, int64_t row) {
  constexpr int kLanes = hn::MaxLanes(Floats());
  constexpr int kVectors = kLanes == 16 ? 4 : 2;  // with 16 registers, half of them sums
  int64_t column = 0;
  for (; column + kVectors * kLanes <= p.columns; column += kVectors * kLanes) {
    tile<kRows, kVectors>(p, row, column);
  }
  for (; column + kLanes <= p.columns; column += kLanes) tile<kRows, 1>(p, row, column);
  for (int r = 0; r < kRows; ++r) {
    for (int64_t c = column; c < p.columns; ++c) element(p, row + r, c);
  }
}

void AddOuterProducts(const OuterProducts& p, int64_t begin, int64_t end) {
  constexpr int kRows = 4;
  int64_t row = begin;
  for (; row + kRows <= end; row += kRows) rows_of<kRows>(p, row);
  for (; row < end; ++row) rows_of<1>(p, row);
}

}  // namespace
}  // namespace lacuna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna {
namespace {

HWY_EXPORT(AddOuterProducts);

void add_reference(const OuterProducts& p, int64_t begin, int64_t end) {
  for (int64_t position = begin * p.columns; position < end * p.columns; ++position) {
    double sum = p.accumulate ? p.gradient[position] : 0.0;
    for (int64_t e = 0; e < p.batch; ++e) {
      sum += static_cast<double>(p.dy[e * p.rows + position / p.columns]) *
             p.x[e * p.columns + position % p.columns];
    }
    p.gradient[position] = p.is_kept(position) ? static_cast<float>(sum) : 0.0f;
  }
}

}  // namespace

void masked_outer_products(const BitMask& mask, int64_t batch, int64_t rows, int64_t columns,
                           const float* dy, const float* x, Accumulate accumulate,
                           float* gradient) {
  const bool adds = accumulate == Accumulate::Yes;
  if (mask.size() != rows * columns) {
    throw ShapeError(
        fmt::format("a mask of {} bits for a gradient of {} x {}", mask.size(), rows, columns));
  }
  const OuterProducts products{.mask = mask.words().data(),
                               .batch = batch,
                               .rows = rows,
                               .columns = columns,
                               .dy = dy,
                               .x = x,
                               .accumulate = adds,
                               .gradient = gradient};
  constexpr int64_t kElements = 1 << 16;  // per task
  const int64_t grain = std::max<int64_t>(kElements / std::max<int64_t>(columns, 1) / 4, 1) * 4;
  const auto run = use_reference_kernels() ? add_reference : HWY_DYNAMIC_DISPATCH(AddOuterProducts);
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) { run(products, begin, end); });
}

}  // namespace lacuna
#endif  // HWY_ONCE
