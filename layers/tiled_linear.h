// The TiledLinear layer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lacuna/framework/nn/init.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/tiled_output.h"
#include "lacuna/layers/linear.h"

namespace lacuna {

/// y = x Wᵀ + b for very many outputs: the rows of W and b are divided among linear layers `0`,
/// `1`, …, the tiles. The output is deferred: multi_label_cross_entropy and the metrics compute it
/// tile by tile, so the whole output is never in memory; other operations compute all of it.
/// *Shapes:* [batch, in_features] → [batch, out_features].
class TiledLinear final : public Module, public TiledOutput {
 public:
  struct Options {
    Linear::Options linear = {};  ///< of all outputs together
    /// Outputs of a tile; the last one has the rest. A tile's logits take 4 bytes for each output
    /// and example of a batch.
    int64_t tile = 16384;
  };

  /// *Errors:* ConfigError unless sizes are at least 1.
  explicit TiledLinear(const Options& options);

  std::string_view type() const override { return "tiled_linear"; }
  Shape output_shape(const Shape& input) const override;
  std::optional<std::vector<Shape>> child_inputs(const Shape& input) const override;
  std::vector<ParameterPtr> tile_weights() const override;

 protected:
  Variable forward(const Variable& input) override;

 private:
  bool runs_by_layers() const;

  Options options_;
  std::vector<Linear*> tiles_;
};

}  // namespace lacuna
