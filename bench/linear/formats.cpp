#include "linear/formats.h"

#include <numeric>

#include "common/operands.h"
#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/layouts/cost/position_sample.hpp"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/positions.h"

namespace lacuna::bench {
namespace {

// Of every m units side by side n.
BitMask n_of_m(const PatternShape& pattern, int64_t rows, int64_t columns) {
  const CounterRng rng(1, "tiles");
  BitMask mask = BitMask::zeros(rows * columns);
  std::vector<int64_t> order(static_cast<size_t>(pattern.m()));
  uint64_t draw = 0;
  for (int64_t first = 0; first < rows * columns; first += pattern.m()) {
    std::iota(order.begin(), order.end(), first);
    for (int64_t i = 0; i < pattern.n(); ++i) {
      const auto other =
          static_cast<int64_t>(rng.below(draw++, static_cast<uint64_t>(pattern.m() - i)));
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(i + other)]);
      mask.set(order[static_cast<size_t>(i)]);
    }
  }
  return mask;
}

}  // namespace

std::vector<Format> formats_of(double sparsity, int64_t out, int64_t in) {
  std::vector<PatternShape> patterns = {PatternShape::block(1, 4), PatternShape::block(4, 4),
                                        PatternShape::block(16, 16), PatternShape::block(32, 32)};
  if (sparsity == 0.5) {
    patterns.insert(patterns.end(), {PatternShape::nm(2, 4, 4), PatternShape::nm(2, 4, 8),
                                     PatternShape::nm(2, 4), PatternShape::transposable_2_4()});
  } else if (sparsity == 0.75) {
    patterns = {PatternShape::nm(1, 4, 8), PatternShape::nm(1, 4)};
  }
  std::vector<Format> all;
  for (const PatternShape& pattern : patterns) {
    const Shape divisors = pattern.divisors();
    if (out % divisors[0] == 0 && in % divisors[1] == 0)
      all.push_back({pattern, &layout_for(pattern)});
  }
  return all;
}

BitMask random_positions(const Format& f, int64_t out, int64_t in, double sparsity) {
  const Shape shape{out, in};
  if (f.is_sampled()) return sample_positions(f.pattern, shape, 1.0 - sparsity).to_mask();
  const int64_t height = f.pattern.unit_rows(), width = f.pattern.unit_columns();
  const int64_t rows = out / height, columns = in / width;
  const BitMask units = f.pattern.is_nm() ? n_of_m(f.pattern, rows, columns)
                                          : random_mask(rows, columns, sparsity, Degrees::Uniform);
  BitMask mask = BitMask::zeros(out * in);
  units.for_each([&](int64_t unit) {
    const int64_t corner = unit / columns * height * in + unit % columns * width;
    for (int64_t r = 0; r < height; ++r) {
      for (int64_t c = 0; c < width; ++c) mask.set(corner + r * in + c);
    }
  });
  return mask;
}

}  // namespace lacuna::bench
