// The TokenTypeEmbedding layer.
#pragma once

#include <cstdint>
#include <string>

#include "lacuna/framework/nn/init.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/named_inputs.h"

namespace lacuna {

/// Adds a vector for the type of each token: y = x + weight[types]. The types are those of the
/// batch's named input (nn/named_inputs.h), or 0 without it. *Shapes:* [batch, T, features], kept;
/// types [batch, T]; parameter `weight` [types, features].
class TokenTypeEmbedding final : public Module, public NamedInputUser {
 public:
  struct Options {
    int64_t types = 2;
    int64_t features = 0;
    std::string input = kTokenTypes;
    WeightDraw init = {WeightInit::Normal, 1.0};  ///< as in TokenEmbedding
  };

  /// *Errors:* ConfigError unless both sizes are at least 1, and on an init as in TokenEmbedding.
  explicit TokenTypeEmbedding(const Options& options);

  std::string_view type() const override { return "token_type_embedding"; }
  const Options& options() const { return options_; }
  RequestedInput requested_input() const override {
    return {.name = options_.input,
            .usual = kTokenTypes,
            .below = options_.types,
            .below_key = "types"};
  }
  Shape output_shape(const Shape& input) const override;
  const ParameterPtr& weight() const { return weight_; }

 protected:
  /// *Errors:* ShapeError with both shapes; DataError on a type out of range.
  Variable forward(const Variable& input) override;

 private:
  Options options_;
  ParameterPtr weight_;
};

}  // namespace lacuna
