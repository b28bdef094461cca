// The Sigmoid layer.
#pragma once

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// y = 1 / (1 + e⁻ˣ). *Shapes:* any, kept.
class Sigmoid final : public Module {
 public:
  struct Options {};

  explicit Sigmoid(const Options& = {}) {}

  std::string_view type() const override { return "sigmoid"; }

 protected:
  Variable forward(const Variable& input) override;
};

}  // namespace lacuna
