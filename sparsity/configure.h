// configure: a sparsity algorithm from a configuration.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "lacuna/framework/config/registry.h"
#include "lacuna/sparsity/algorithm.h"
#include "lacuna/sparsity/dynamic.h"

namespace lacuna {

/// An algorithm that `sparsity.algorithm` can name. Only `make` is required: it reads its keys from
/// the entry's map.
struct AlgorithmType {
  std::function<std::unique_ptr<SparsityAlgorithm>(const Config& entry, uint64_t seed)> make;
  /// Continues the words "use it …" in `lacuna list algorithms`: "to prune a trained model".
  std::string when = "";
  /// Whether an entry reads `calibration` (CalibrationOptions): a run then records its calibration
  /// examples. Null: no entry does.
  std::function<bool(const Config& entry)> calibrates = nullptr;
};

using AlgorithmRegistry = Registry<AlgorithmType>;
AlgorithmRegistry& algorithm_registry();
/// Adds the built-in algorithms.
void register_algorithms(AlgorithmRegistry& registry);
/// Sets the function that is called with the name of an algorithm that is not in the registry: it
/// may add one, and returns the name to use.
void set_algorithm_lookup(std::function<std::string(const std::string& name)> lookup);

// Factories to register algorithms with: each reads its options' keys from the entry.

/// For subclasses constructed from SparsityOptions.
template <class Algorithm>
std::unique_ptr<SparsityAlgorithm> make_algorithm(const Config& entry, uint64_t seed) {
  return std::make_unique<Algorithm>(SparsityOptions::from_config(entry, seed));
}

/// The options of an algorithm whose masks change: the keys of SparsityOptions, and `update`.
DynamicOptions dynamic_options(const Config& entry, uint64_t seed);

/// For subclasses constructed from DynamicOptions, without a drop fraction.
template <class Algorithm>
std::unique_ptr<SparsityAlgorithm> make_dynamic(const Config& entry, uint64_t seed) {
  return std::make_unique<Algorithm>(dynamic_options(entry, seed));
}

/// The same for an algorithm that drops a fraction: also `drop_fraction` and `keep_alive`.
DynamicOptions drop_grow_options(const Config& entry, uint64_t seed);

/// For subclasses constructed from DynamicOptions that drop a fraction.
template <class Algorithm>
std::unique_ptr<SparsityAlgorithm> make_drop_grow(const Config& entry, uint64_t seed) {
  return std::make_unique<Algorithm>(drop_grow_options(entry, seed));
}

/// number → static at that sparsity; map → the algorithm it names (`algorithm` or `type`, static by
/// default); list of maps → a Group; a map with `phases` → Phases. null → none (a null pointer).
/// `seed` determines all random masks. *Errors:* ConfigError with file, line, key path and the
/// nearest valid name.
std::unique_ptr<SparsityAlgorithm> configure(const Config& config, uint64_t seed);

}  // namespace lacuna
