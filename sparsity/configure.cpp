#include "lacuna/sparsity/configure.h"

#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/gmp.h"
#include "lacuna/sparsity/group.h"
#include "lacuna/sparsity/rigl.h"
#include "lacuna/sparsity/set.h"
#include "lacuna/sparsity/static.h"

namespace lacuna {
namespace {

// Gives what an options check throws the position of the entry it came from.
template <class Make>
std::unique_ptr<SparsityAlgorithm> at_entry(const Config& entry, Make&& make) {
  try {
    return make();
  } catch (const ConfigError& error) {
    if (std::string(error.what()).starts_with(entry.position().file + ":")) throw;
    entry.error(error.what());
  }
}

template <class Algorithm>
std::unique_ptr<SparsityAlgorithm> make_drop_grow(const Config& entry, uint64_t seed) {
  DynamicOptions options = DynamicOptions::from_config(entry, seed);
  const Config fraction = entry.get("drop_fraction");
  if (fraction.is_number()) {
    require_range(entry, "drop_fraction", fraction.as<double>(), 0.0, 1.0);
  }
  options.drop_fraction = fraction.is_null() ? Schedule(entry.get<double>("drop_fraction", 0.3))
                                             : Schedule::from_config(fraction);
  return std::make_unique<Algorithm>(std::move(options));
}

std::unique_ptr<SparsityAlgorithm> configure_entry(const Config& entry, uint64_t seed) {
  if (!entry.is_map()) entry.fail("a map with `algorithm` and its keys");
  if (entry.has("algorithm") && entry.has("type")) {
    entry.get("type").error("`algorithm` and `type` mean the same; give one of them");
  }
  const Config named = entry.has("type") ? entry.get("type") : entry.get("algorithm");
  const std::string name =
      named.is_null() ? entry.get<std::string>("algorithm", "static") : named.as<std::string>();
  const auto& factory = algorithm_registry().find(name, named.is_null() ? entry : named);
  return at_entry(entry, [&] { return factory.make(entry, seed); });
}

}  // namespace

AlgorithmRegistry& algorithm_registry() {
  static AlgorithmRegistry registry("sparsity algorithm");
  return registry;
}

void register_algorithms(AlgorithmRegistry& r) {
  r.add("static", "a mask made once by init_method and kept",
        [](const Config& entry, uint64_t seed) -> std::unique_ptr<SparsityAlgorithm> {
          return std::make_unique<Static>(SparsityOptions::from_config(entry, seed));
        });
  r.add("gmp", "gradual magnitude pruning: keeps the largest |w| to a rising target",
        [](const Config& entry, uint64_t seed) -> std::unique_ptr<SparsityAlgorithm> {
          return std::make_unique<Gmp>(DynamicOptions::from_config(entry, seed));
        });
  r.add("set", "drops the smallest |w|, regrows at random", make_drop_grow<Set>);
  r.add("rigl", "drops the smallest |w|, regrows where |dense gradient| is largest",
        make_drop_grow<RigL>);
}

std::unique_ptr<SparsityAlgorithm> configure(const Config& config, uint64_t seed) {
  if (config.is_null()) return nullptr;
  if (config.is_number()) {
    const auto sparsity = config.as<double>();
    if (!(sparsity >= 0.0 && sparsity < 1.0)) config.fail("a sparsity in [0, 1)");
    return std::make_unique<Static>(SparsityOptions{.sparsity = sparsity, .seed = seed});
  }
  if (config.is_map()) return configure_entry(config, seed);
  if (!config.is_list()) config.fail("a number, a map or a list of maps");
  auto group = std::make_unique<Group>();
  for (const Config& entry : config.items()) {
    group->add(ParameterFilter::from_config(entry.get("param_filter")),
               configure_entry(entry, seed));
  }
  if (group->algorithms().empty()) config.fail("at least one entry");
  return group;
}

}  // namespace lacuna
