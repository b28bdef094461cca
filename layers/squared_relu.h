// The squared ReLU layer.
#pragma once

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// y = max(x, 0)². *Shapes:* any, kept.
class SquaredReLU final : public Module {
 public:
  struct Options {};

  explicit SquaredReLU(const Options& = {}) {}

  std::string_view type() const override { return "squared_relu"; }

 protected:
  Variable forward(const Variable& input) override;
};

}  // namespace lacuna
