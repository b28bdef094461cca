// The Dropout layer.
#pragma once

#include <cstdint>

#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/sharded_batch.h"

namespace lacuna {

/// In training mode y = x · (0 with probability p, else 1 / (1 − p)); in evaluation mode y = x. The
/// dropped elements are a function of the seed, the layer's path and the number of the call, which
/// is part of the state. *Shapes:* any, kept.
class Dropout final : public Module {
 public:
  struct Options {
    double p = 0.5;  ///< in [0, 1)
  };

  Dropout() : Dropout(Options()) {}
  /// *Errors:* ConfigError unless p is in [0, 1).
  explicit Dropout(const Options& options);

  std::string_view type() const override { return "dropout"; }

 protected:
  Variable forward(const Variable& input) override;
  StateDict extra_state() const override;
  void load_extra_state(const StateDict& state) override;
  void reset_random(uint64_t seed) override;

 private:
  Options options_;
  uint64_t seed_ = 0;
  DrawCounter calls_;
};

}  // namespace lacuna
