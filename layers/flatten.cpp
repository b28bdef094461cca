#include "lacuna/layers/flatten.h"

#include "lacuna/framework/autograd/ops/shape.h"
#include "lacuna/framework/nn/layer_options.hpp"

namespace lacuna {

Variable Flatten::forward(const Variable& input) { return flatten(input); }

void register_flatten(LayerRegistry& registry) {
  registry.add("flatten", "all of an example's dimensions in one",
               {.make = make_plain<Flatten>, .onnx = onnx_operator("Flatten")});
}

}  // namespace lacuna
