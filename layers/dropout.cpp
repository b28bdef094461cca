#include "lacuna/layers/dropout.h"

#include <fmt/core.h>

#include <string>

#include "lacuna/framework/autograd/ops/dropout.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {

Dropout::Dropout(const Options& options) : options_(options) {
  if (!(options.p >= 0.0 && options.p < 1.0)) {
    throw ConfigError(fmt::format("dropout: p must be in [0, 1), found {:f}", options.p));
  }
}

Variable Dropout::forward(const Variable& input) {
  if (!training() || options_.p == 0.0) return input;
  const auto call = static_cast<uint64_t>(calls_.next());
  return dropout(input, options_.p, CounterRng(seed_, path(), call), first_example());
}

StateDict Dropout::extra_state() const {
  StateDict state;
  state.set("calls", calls_.count());
  return state;
}

void Dropout::load_extra_state(const StateDict& state) { calls_.set(state.count("calls")); }

void Dropout::reset_random(uint64_t seed) {
  seed_ = seed;
  calls_.set(0);
}

}  // namespace lacuna
