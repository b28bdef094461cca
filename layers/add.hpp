// The Add layer.
#pragma once

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// The sum of its inputs, for models written in C++: `add(std::vector<Variable>{a, b})`.
/// *Shapes:* one, that of all inputs. *Errors:* ShapeError with both shapes where two differ, or
/// when there is no input.
class Add final : public Module {
 public:
  struct Options {};

  explicit Add(const Options& = {}) {}

  std::string_view type() const override { return "add"; }

 protected:
  Variable forward(const Variable& input) override { return input; }
  Variable forward_all(std::span<const Variable> inputs) override;
};

}  // namespace lacuna
