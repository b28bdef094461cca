// TiledOutput: an additional base class of layers whose outputs are classes in several weights,
// tile by tile.
#pragma once

#include <vector>

#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// A layer with very many outputs that is meant to be sparse: the default filter of a configuration
/// includes its weights, although it is the output layer.
class TiledOutput {
 public:
  virtual ~TiledOutput() = default;
  /// The weights [classes, features], one tile after the other.
  virtual std::vector<ParameterPtr> tile_weights() const = 0;
};

}  // namespace lacuna
