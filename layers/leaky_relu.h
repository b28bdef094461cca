// The LeakyReLU layer.
#pragma once

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// y = x where x ≥ 0, else negative_slope · x. *Shapes:* any, kept.
class LeakyReLU final : public Module {
 public:
  struct Options {
    float negative_slope = 0.01f;  ///< a finite number of at least 0
  };

  LeakyReLU() : LeakyReLU(Options()) {}
  /// *Errors:* ConfigError on a slope out of range.
  explicit LeakyReLU(const Options& options);

  std::string_view type() const override { return "leaky_relu"; }
  const Options& options() const { return options_; }

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
};

}  // namespace lacuna
