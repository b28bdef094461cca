// Keys that a `model` section gives once for all of its layers.
#pragma once

#include <array>
#include <set>
#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/model/model_layers.hpp"
#include "lacuna/framework/nn/layer_registry.h"

namespace lacuna {

/// The names of these keys; presets accept them too.
inline constexpr std::array<const char*, 3> kSharedKeys = {"init_fan_in", "attention_scale",
                                                           "sparse_gradient"};

/// These keys of a model.
class SharedKeys {
 public:
  /// *Errors:* ConfigError if `attention_scale` is not a number above 0, or `sparse_gradient` is
  /// neither true nor false.
  explicit SharedKeys(const Config& model);

  /// Writes the keys into the options of a layer that reads them and has none of its own. A layer
  /// that is its type alone has no options, and is left as it is.
  ///
  /// *Errors:* ConfigError at `sparse_gradient` if the layer is tied to an embedding that got it,
  /// because every row of a tied table has a gradient.
  void give_to(ModelLayer& layer, const LayerType& type);

  /// To be called after the last layer. *Errors:* ConfigError at `sparse_gradient` if the model has
  /// no embedding, or all of them state another value.
  void require_use() const;

 private:
  /// Whether the key was written.
  bool give(const Config& value, const char* key, ModelLayer& layer) const;
  void require_own_weight(const ModelLayer& layer) const;

  Config fan_in_, attention_scale_, sparse_gradient_;  // null if the model does not give them
  bool has_embedding_ = false, is_used_ = false;       // `sparse_gradient`
  std::set<std::string> tables_;  // paths of the embeddings that got `sparse_gradient`
};

}  // namespace lacuna
