// The Linear layer.
#pragma once

#include <cstdint>

#include "lacuna/framework/nn/affine_layer.h"
#include "lacuna/framework/nn/row_by_row.h"

namespace lacuna {

/// y = x Wᵀ + b. *Shapes:* [..., in_features] → [..., out_features]; parameters `weight`
/// [out_features, in_features] and `bias` [out_features].
class Linear final : public AffineLayer, public RowByRow {
 public:
  struct Options {
    int64_t in_features = 0;
    int64_t out_features = 0;
    bool bias = true;
    /// How the weight is drawn. The bias is uniform within ± 1/√fan-in, as in PyTorch; zero when
    /// the weight is, or is drawn with a standard deviation (WeightDraw::zero_bias).
    WeightDraw init = WeightInit::Default;
    /// Inputs of one output that `init` counts: all, those that the first mask leaves
    /// (`FanIn::nonzeros()`), or a number. Where the nonzeros count, the bias is drawn for all: it
    /// is one number, however many inputs are added to it.
    FanIn init_fan_in = FanIn::all();
  };

  /// *Errors:* ConfigError unless both sizes are at least 1 and init_fan_in is not negative.
  explicit Linear(const Options& options);

  std::string_view type() const override { return "linear"; }
  Shape output_shape(const Shape& input) const override;
  int64_t uses_per_weight(const Shape& example) const override { return example.batch(); }
  bool gives_channels(const Shape& input) const override { return input.rank() == 1; }

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
};

}  // namespace lacuna
