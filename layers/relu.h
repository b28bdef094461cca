// The ReLU layer.
#pragma once

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// y = max(x, 0). *Shapes:* any, kept.
class ReLU final : public Module {
 public:
  struct Options {};

  explicit ReLU(const Options& = {}) {}

  std::string_view type() const override { return "relu"; }

 protected:
  Variable forward(const Variable& input) override;
};

}  // namespace lacuna
