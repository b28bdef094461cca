// Keys that a `model` section gives once for all of its layers.
#pragma once

#include <set>
#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/model/model_layers.hpp"
#include "lacuna/framework/nn/layer_registry.h"

namespace lacuna {

/// `init_fan_in`, `attention_scale` and `sparse_gradient` of a model.
class SharedKeys {
 public:
  /// *Errors:* ConfigError where `attention_scale` is no number above 0, or `sparse_gradient` is
  /// neither true nor false.
  explicit SharedKeys(const Config& model);

  /// Writes the keys into the options of a layer that reads them and has none of its own. A layer
  /// that is its type alone has no options, and is left as it is.
  ///
  /// *Errors:* ConfigError at `sparse_gradient` if the layer is tied to an embedding that got it,
  /// because every row of a tied table has a gradient.
  void give_to(ModelLayer& layer, const LayerType& type);

  /// *Errors:* ConfigError at `sparse_gradient` if none of the layers so far has such a key.
  void require_embedding() const;

 private:
  void give(const Config& value, const char* key, ModelLayer& layer) const;
  void require_own_weight(const ModelLayer& layer) const;

  Config fan_in_, attention_scale_, sparse_gradient_;  // null if the model does not give them
  bool has_embedding_ = false;
  std::set<std::string> tables_;  // paths of the embeddings that got `sparse_gradient`
};

}  // namespace lacuna
