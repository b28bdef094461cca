// The Linear layer.
#pragma once

#include <cstdint>
#include <memory>

#include "lacuna/framework/nn/affine_layer.h"
#include "lacuna/framework/nn/parameter_versions.h"
#include "lacuna/framework/nn/row_by_row.h"

namespace lacuna {

struct Int8Linear;

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
    /// Number of inputs of one output that `init` uses: all, the nonzeros of the first mask
    /// (`FanIn::nonzeros()`), or a number. With nonzeros, a given standard deviation grows by √(all
    /// / nonzeros), and the bias is still drawn for all inputs, because it is a single number for
    /// any number of inputs.
    FanIn init_fan_in = FanIn::all();

    /// Reads `out_features`, `in_features` (by default those of the input), `bias`, `init` and
    /// `init_fan_in`. *Errors:* ConfigError.
    static Options from_config(const Config& options, const Shape& input);
  };

  /// *Errors:* ConfigError unless both sizes are at least 1 and init_fan_in is not negative.
  explicit Linear(const Options& options);

  std::string_view type() const override { return "linear"; }
  Shape output_shape(const Shape& input) const override;
  int64_t uses_per_weight(const Shape& example) const override { return example.batch(); }
  bool gives_channels(const Shape& input) const override { return input.rank() == 1; }

  /// From now on, products run in int8 and are not recorded: the layer serves inference only, and
  /// its forward pass throws StateError after a change of weight or bias.
  void run_in_int8(std::shared_ptr<const Int8Linear> quantized);
  /// Null if products run in float32.
  const std::shared_ptr<const Int8Linear>& int8() const { return int8_; }

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
  std::shared_ptr<const Int8Linear> int8_;
  ParameterVersions in_int8_;
};

}  // namespace lacuna
