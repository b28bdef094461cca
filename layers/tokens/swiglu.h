// The SwiGLU layer.
#pragma once

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// y = silu(gate) · up of two branches that lie side by side, as a Parallel of two Linear puts
/// them. *Shapes:* [..., 2 features] → [..., features].
class SwiGLU final : public Module {
 public:
  struct Options {};

  explicit SwiGLU(const Options& = {}) {}

  std::string_view type() const override { return "swiglu"; }
  Shape output_shape(const Shape& input) const override;

 protected:
  Variable forward(const Variable& input) override;
};

}  // namespace lacuna
