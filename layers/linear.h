// The Linear layer.
#pragma once

#include <cstdint>
#include <string>

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
    /// the weight is, or is drawn with a standard deviation (WeightDraw::zero_bias).
    WeightDraw init = WeightInit::Default;
    /// Inputs of one output that `init` reckons with: all, those that the first mask leaves
    /// (`FanIn::nonzeros()`), or a number. Where the nonzeros count, the bias is drawn for all: it
    /// is one number, however many inputs are added to it.
    FanIn init_fan_in = FanIn::all();
    /// The full name of another layer's parameter [out_features, in_features] that is the weight of
    /// this one too, as of GPT-2's head ("wte.weight"); empty: the layer has its own.
    std::string tied_to = {};
  };

  /// *Errors:* ConfigError unless both sizes are at least 1 and init_fan_in is not negative.
  explicit Linear(const Options& options);

  std::string_view type() const override { return "linear"; }
  Shape output_shape(const Shape& input) const override;
  int64_t uses_per_weight(const Shape& example) const override { return example.batch(); }
  /// A tied layer's is null until it is tied.
  const ParameterPtr& weight() const { return weight_; }
  const std::string& tied_to() const { return options_.tied_to; }
  /// Makes a parameter of another layer the weight of a layer that is `tied_to` it. It stays that
  /// layer's: it is listed, saved and trained once, with the gradients of both uses. *Errors:*
  /// ShapeError with both shapes; StateError where the layer has a weight of its own.
  void tie(const ParameterPtr& weight);
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
