#include "lacuna/framework/nn/layer_registry.h"

namespace lacuna {

LayerRegistry& layer_registry() {
  static LayerRegistry registry("layer");
  return registry;
}

}  // namespace lacuna
