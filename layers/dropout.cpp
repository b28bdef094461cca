#include "lacuna/layers/dropout.h"

#include <fmt/core.h>

#include <memory>
#include <string>

#include "lacuna/framework/autograd/ops/dropout.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"

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

namespace {

LayerPtr make_dropout(const Config& options, const Shape&) {
  const double p = options.get("p", 0.5);
  if (!(p >= 0.0 && p < 1.0)) options.at("p").fail("a probability in [0, 1)");
  return std::make_unique<Dropout>(Dropout::Options{.p = p});
}

}  // namespace

void register_dropout(LayerRegistry& registry) {
  registry.add("dropout", "zeroes elements while training: p",
               {.make = make_dropout, .onnx = onnx_identity(), .units = units_kept()});
}

}  // namespace lacuna
