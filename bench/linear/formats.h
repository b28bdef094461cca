// The structured patterns that the linear benchmark measures, each in the layout made for it.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna::bench {

/// Tiles of tile_rows × tile_columns weights, of every m side by side n.
struct Format {
  const Layout* layout = nullptr;
  int64_t tile_rows = 1, tile_columns = 1;
  int64_t n = 0, m = 0;  ///< 0: any number of tiles, anywhere
  bool sampled = false;  ///< the positions are those that the layout samples

  std::string name() const { return std::string(layout->name()); }
};

/// The formats that have this sparsity and whose tiles a weight of this shape is made of.
std::vector<Format> formats_of(double sparsity, int64_t out, int64_t in);

/// Random tiles: n of every m, or round((1 − sparsity) · tiles) of all, drawn without replacement;
/// or what the layout samples.
BitMask random_tiles(const Format& format, int64_t out, int64_t in, double sparsity);

}  // namespace lacuna::bench
