// The ClassToken layer.
#pragma once

#include <cstdint>

#include "lacuna/framework/nn/init.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Puts a learned token before each sequence. *Shapes:* [batch, T, features] → [batch, T + 1,
/// features]; one bare parameter [1, 1, features] of the layer's own name.
class ClassToken final : public Module {
 public:
  struct Options {
    int64_t features = 0;
    WeightDraw init = WeightInit::Zeros;  ///< as in TokenEmbedding, with another default
  };

  /// *Errors:* ConfigError unless features is at least 1, and on an init as in TokenEmbedding.
  explicit ClassToken(const Options& options);

  std::string_view type() const override { return "class_token"; }
  Shape output_shape(const Shape& input) const override;
  const ParameterPtr& token() const { return token_; }

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
  ParameterPtr token_;
};

}  // namespace lacuna
