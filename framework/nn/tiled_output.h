// TiledOutput: a second base of layers whose outputs are classes in several weights, tile by tile.
#pragma once

#include <vector>

#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// A layer of very many outputs that is meant to be sparse: the default filter of a configuration
/// takes its weights, although they are those of the output layer.
class TiledOutput {
 public:
  virtual ~TiledOutput() = default;
  /// The weights [classes, features], one tile after the other.
  virtual std::vector<ParameterPtr> tile_weights() const = 0;
};

}  // namespace lacuna
