// The Linear layer.
#pragma once

#include <cstdint>

#include "lacuna/framework/nn/init.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// y = x Wᵀ + b. *Shapes:* [..., in_features] → [..., out_features]; parameters `weight`
/// [out_features, in_features] and `bias` [out_features].
class Linear final : public Module {
 public:
  struct Options {
    int64_t in_features = 0;
    int64_t out_features = 0;
    bool bias = true;
    /// How the weight is drawn. The bias is uniform within ± 1/√fan-in, as in PyTorch; zero when
    /// the weight is.
    WeightInit init = WeightInit::Default;
    /// Inputs of one output that `init` reckons with; 0, the default: in_features. A sparse layer
    /// with few inputs left needs weights as large as those of a small dense one, or its outputs
    /// vanish. *Source:* Evci et al., "Gradient flow in sparse neural networks and how lottery
    /// tickets win", AAAI 2022 (arXiv:2010.03533), which scales each output by its own fan-in.
    int64_t init_fan_in = 0;
  };

  /// *Errors:* ConfigError unless both sizes are at least 1 and init_fan_in is at least 0.
  explicit Linear(const Options& options);

  std::string_view type() const override { return "linear"; }
  Shape output_shape(const Shape& input) const override;
  const ParameterPtr& weight() const { return weight_; }
  /// Null without a bias.
  const ParameterPtr& bias() const { return bias_; }

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
  ParameterPtr weight_;
  ParameterPtr bias_;
};

}  // namespace lacuna
