#include "lacuna/framework/train/builtins.h"

#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/nn/layer_registry.h"
#include "lacuna/layers/builtin.hpp"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/sparsifier.h"

namespace lacuna {

void register_builtins() {
  // Schedules and optimizers are in their registries from the start.
  static const bool registered = [] {
    register_layers(layer_registry());
    register_algorithms(algorithm_registry());
    register_sparsifiers(sparsifier_registry());
    register_datasets(dataset_registry());
    return true;
  }();
  (void)registered;
}

}  // namespace lacuna
