// The EmbeddingBag layer.
#pragma once

#include <cstdint>

#include "lacuna/framework/nn/init.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/named_inputs.h"

namespace lacuna {

/// y = Σ_j x_j · weight[j] + b over the features j that a sparse example has: a linear layer whose
/// weight is stored by inputs. The input holds the examples' values, and the batch's `feature_ids`
/// their features. *Shapes:* [batch, most] → [batch, out_features]; parameters `weight`
/// [in_features, out_features] and `bias` [out_features].
class EmbeddingBag final : public Module, public NamedInputUser {
 public:
  struct Options {
    int64_t in_features = 0;
    int64_t out_features = 0;
    bool bias = true;
    /// Default: normal with standard deviation 0.1, which is also that of the outputs for examples
    /// of length 1. Only Normal, TruncatedNormal and Zeros are valid. The bias begins with 0.
    WeightDraw init = {WeightInit::Normal, 0.1};
    /// Whether the cost of a step depends only on the features of its batch
    /// (Parameter::sparse_gradient).
    bool sparse_gradient = true;
  };

  /// *Errors:* ConfigError unless both sizes are at least 1, and on an init that depends on a
  /// fan-in.
  explicit EmbeddingBag(const Options& options);

  std::string_view type() const override { return "embedding_bag"; }
  RequestedInput requested_input() const override;
  Shape output_shape(const Shape& input) const override;
  const ParameterPtr& weight() const { return weight_; }
  /// Null without one.
  const ParameterPtr& bias() const { return bias_; }

 protected:
  /// *Errors:* StateError if the batch has no `feature_ids`; DataError on one that is out of range.
  Variable forward(const Variable& input) override;

 private:
  Options options_;
  ParameterPtr weight_, bias_;
};

}  // namespace lacuna
