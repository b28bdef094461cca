#include "linear/formats.h"

#include <algorithm>
#include <numeric>

#include "common/operands.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/layouts/grouped.h"
#include "lacuna/framework/layouts/nm.h"
#include "lacuna/framework/layouts/positions.h"

namespace lacuna::bench {
namespace {

Format nm(const NmFormat& f) {
  const int64_t rows = f.transposable ? f.m : 1;
  return {.layout = &nm_layout(f), .tile_rows = rows, .n = f.n, .m = f.m, .sampled = rows > 1};
}
Format grouped_nm(const GroupedNmFormat& f) {
  return {.layout = &grouped_nm_layout(f), .tile_rows = f.group, .n = f.n, .m = f.m};
}
Format block(const BlockFormat& f) {
  return {.layout = &block_layout(f), .tile_rows = f.rows, .tile_columns = f.columns};
}

// Of every m tiles side by side n.
BitMask n_of_m(const Format& f, int64_t rows, int64_t columns) {
  const CounterRng rng(1, "tiles");
  BitMask mask = BitMask::zeros(rows * columns);
  std::vector<int64_t> order(static_cast<size_t>(f.m));
  uint64_t draw = 0;
  for (int64_t first = 0; first < rows * columns; first += f.m) {
    std::iota(order.begin(), order.end(), first);
    for (int64_t i = 0; i < f.n; ++i) {
      const auto other = static_cast<int64_t>(rng.below(draw++, static_cast<uint64_t>(f.m - i)));
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(i + other)]);
      mask.set(order[static_cast<size_t>(i)]);
    }
  }
  return mask;
}

}  // namespace

std::vector<Format> formats_of(double sparsity, int64_t out, int64_t in) {
  std::vector<Format> all = {block({4, 4}), block({16, 16}), block({32, 32})};
  if (sparsity == 0.5) {
    all.push_back(grouped_nm({.n = 2, .m = 4, .group = 4}));
    all.push_back(grouped_nm({.n = 2, .m = 4, .group = 8}));
    all.push_back(nm({.n = 2, .m = 4}));
    all.push_back(nm({.n = 2, .m = 4, .transposable = true}));
  } else if (sparsity == 0.75) {
    all = {grouped_nm({.n = 1, .m = 4, .group = 8}), nm({.n = 1, .m = 4})};
  }
  std::erase_if(all, [&](const Format& f) {
    return out % f.tile_rows != 0 || in % (f.tile_columns * std::max<int64_t>(f.m, 1)) != 0;
  });
  return all;
}

BitMask random_tiles(const Format& f, int64_t out, int64_t in, double sparsity) {
  if (f.sampled) return f.layout->sample(Shape{out, in}, 1.0 - sparsity).to_mask();
  const int64_t rows = out / f.tile_rows, columns = in / f.tile_columns;
  const BitMask tiles =
      f.m > 0 ? n_of_m(f, rows, columns) : random_mask(rows, columns, sparsity, Degrees::Uniform);
  BitMask mask = BitMask::zeros(out * in);
  tiles.for_each([&](int64_t tile) {
    const int64_t corner = tile / columns * f.tile_rows * in + tile % columns * f.tile_columns;
    for (int64_t r = 0; r < f.tile_rows; ++r) {
      for (int64_t c = 0; c < f.tile_columns; ++c) mask.set(corner + r * in + c);
    }
  });
  return mask;
}

}  // namespace lacuna::bench
