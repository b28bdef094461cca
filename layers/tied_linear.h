// The linear layer that uses the weight of another layer.
#pragma once

#include <string>

#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/row_by_row.h"
#include "lacuna/framework/nn/tied_weight.h"

namespace lacuna {

/// y = x Wᵀ + b with the weight of another layer, such as a language model's head that uses the
/// table of its token embedding. *Shapes:* [..., in_features] → [..., out_features] for a weight
/// [out_features, in_features]; parameter `bias` [out_features], initially zero.
///
/// Only the other layer has the weight as a parameter; the gradients of both uses are added. A
/// sparsity algorithm gives both uses one pattern, if its `param_filter` has the weight's full name
/// (`Parameter::is_tied`).
class TiedLinear final : public Module, public RowByRow, public TiedWeight {
 public:
  struct Options {
    ParameterPtr weight = {};  ///< of another layer, which must outlive the use of this one
    bool bias = true;
  };

  /// *Errors:* ConfigError without a weight, and on one whose gradient is to be sparse; ShapeError
  /// unless it is a matrix.
  explicit TiedLinear(const Options& options);

  std::string_view type() const override { return "linear"; }
  /// "tied to transformer.wte".
  std::string description() const override;
  Shape output_shape(const Shape& input) const override;
  int64_t uses_per_weight(const Shape& example) const override { return example.batch(); }
  const ParameterPtr& tied_weight() const override { return weight_; }
  /// Null without a bias.
  const ParameterPtr& bias() const { return bias_; }

 protected:
  Variable forward(const Variable& input) override;

 private:
  ParameterPtr weight_;
  ParameterPtr bias_;
};

}  // namespace lacuna
