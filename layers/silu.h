// The SiLU layer.
#pragma once

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// y = x σ(x). *Shapes:* any, kept.
class SiLU final : public Module {
 public:
  struct Options {};

  explicit SiLU(const Options& = {}) {}

  std::string_view type() const override { return "silu"; }

 protected:
  Variable forward(const Variable& input) override;
};

}  // namespace lacuna
