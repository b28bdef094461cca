// Optimizers by their names in a configuration.
#pragma once

#include <memory>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/registry.h"
#include "lacuna/optimizers/optimizer.h"

namespace lacuna {

using OptimizerRegistry =
    Registry<std::unique_ptr<Optimizer>(const Config&, std::vector<ParameterPtr>)>;
/// Factories by `type`, including the built-in ones; users may add their own.
OptimizerRegistry& optimizer_registry();
/// Adds sgd, adam, adamw.
void register_optimizers(OptimizerRegistry& registry);

/// Builds the optimizer that the map's `type` names. Keys and defaults are those of the options
/// structs. *Errors:* ConfigError with the position of the key; StateError as Optimizer's
/// constructor.
std::unique_ptr<Optimizer> make_optimizer(const Config& config,
                                          std::vector<ParameterPtr> parameters);

namespace internal {
std::vector<ParameterGroup> read_parameter_groups(const Config& config);
[[noreturn]] void fail_at_option(const Config& config, const OptionError& error);
}  // namespace internal

/// For factories: the keys that all optimizers share (lr, weight_decay, warmup, clip_norm,
/// no_decay, groups), read into an options struct, whose values are the defaults (for `lr` a
/// constant). *Errors:* ConfigError.
template <class Options>
void read_optimizer_options(const Config& config, Options& options) {
  if (!config.has("lr")) config.get<double>("lr", options.lr.value_at(0));
  options.lr = Schedule::from_config(config.get("lr"));
  options.weight_decay = config.get<double>("weight_decay", options.weight_decay);
  options.warmup = config.get<int64_t>("warmup", options.warmup);
  options.clip_norm = config.optional<double>("clip_norm");
  if (const auto kinds = config.optional<std::vector<std::string>>("no_decay")) {
    options.no_decay = *kinds;
  }
  options.groups = internal::read_parameter_groups(config);
}

/// For factories: returns `make()`, and gives an OptionError that it throws the position of the key
/// in `config`.
template <class Make>
auto with_positions(const Config& config, Make&& make) {
  try {
    return make();
  } catch (const OptionError& error) {
    internal::fail_at_option(config, error);
  }
}

}  // namespace lacuna
