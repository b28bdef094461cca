// The Tanh layer.
#pragma once

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// y = tanh x. *Shapes:* any, kept.
class Tanh final : public Module {
 public:
  struct Options {};

  explicit Tanh(const Options& = {}) {}

  std::string_view type() const override { return "tanh"; }

 protected:
  Variable forward(const Variable& input) override;
};

}  // namespace lacuna
