// configure: a sparsity algorithm from a configuration.
#pragma once

#include <cstdint>
#include <memory>

#include "lacuna/framework/core/registry.h"
#include "lacuna/sparsity/algorithm.h"

namespace lacuna {

/// Factories by name: they read their keys from the entry's map.
using AlgorithmRegistry =
    Registry<std::unique_ptr<SparsityAlgorithm>(const Config& entry, uint64_t seed)>;
AlgorithmRegistry& algorithm_registry();
/// Adds static, dense, gmp, saliency, ste, acdc, set, rigl, snfs, snip.
void register_algorithms(AlgorithmRegistry& registry);

/// number → static at that sparsity; map → the algorithm it names (`algorithm` or `type`, static by
/// default); list of maps → a Group; a map with `phases` → Phases. null → none (a null pointer).
/// `seed` keys all random masks. *Errors:* ConfigError with file, line, key path and the nearest
/// valid name.
std::unique_ptr<SparsityAlgorithm> configure(const Config& config, uint64_t seed);

}  // namespace lacuna
