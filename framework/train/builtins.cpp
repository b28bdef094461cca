#include "lacuna/framework/train/builtins.h"

#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/nn/layer_registry.h"
#include "lacuna/framework/shrink/structured.hpp"
#include "lacuna/layers/builtin.hpp"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/sparsifier.h"

namespace lacuna {

void register_builtins() {
  // Schedules and optimizers are in their registries from the start.
  static const bool registered = [] {
    register_layers(layer_registry());
    register_algorithms(algorithm_registry());
    algorithm_registry().add(
        "structured", "masks whole neurons, channels and heads step by step",
        AlgorithmType{.make = &Structured::from_config,
                      .when = "for a smaller dense network: `lacuna shrink` removes what it masked",
                      .calibrates = &Structured::calibrates});
    register_sparsifiers(sparsifier_registry());
    register_datasets(dataset_registry());
    return true;
  }();
  (void)registered;
}

}  // namespace lacuna
