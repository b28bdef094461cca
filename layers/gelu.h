// The GELU layer.
#pragma once

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// y = x Φ(x) with Φ the normal distribution's cumulative function. *Shapes:* any, kept.
class GELU final : public Module {
 public:
  enum class Approximate {
    None,  ///< by the error function
    Tanh,  ///< ½ x (1 + tanh(√(2/π) (x + 0.044715 x³)))
  };
  struct Options {
    Approximate approximate = Approximate::None;
  };

  GELU() : GELU(Options()) {}
  explicit GELU(const Options& options) : options_(options) {}

  std::string_view type() const override { return "gelu"; }
  const Options& options() const { return options_; }

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
};

}  // namespace lacuna
