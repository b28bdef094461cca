// The Flatten layer.
#pragma once

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Flattens all dimensions of an example. *Shapes:* [batch, ...] → [batch, features].
class Flatten final : public Module {
 public:
  struct Options {};

  explicit Flatten(const Options& = {}) {}

  std::string_view type() const override { return "flatten"; }
  Shape output_shape(const Shape& input) const override { return {input.numel()}; }

 protected:
  Variable forward(const Variable& input) override;
};

}  // namespace lacuna
