// The structured patterns that the linear benchmark measures, each in the layout made for it.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna::bench {

/// A pattern, and the layout made for it.
struct Format {
  PatternShape pattern;
  const Layout* layout = nullptr;

  std::string name() const { return std::string(layout->name()); }
  /// Whether the positions are those that the layout samples.
  bool is_sampled() const { return pattern.is_transposable(); }
};

/// The formats that have this sparsity and fit a weight of this shape.
std::vector<Format> formats_of(double sparsity, int64_t out, int64_t in);

/// Random units: n of every m, or round((1 − sparsity) · units) of all, drawn without replacement;
/// or what the layout samples.
BitMask random_positions(const Format& format, int64_t out, int64_t in, double sparsity);

}  // namespace lacuna::bench
