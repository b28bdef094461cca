#include "lacuna/layers/flatten.h"

#include "lacuna/framework/autograd/ops/shape.h"
#include "lacuna/framework/nn/layer_options.hpp"

namespace lacuna {

Variable Flatten::forward(const Variable& input) { return flatten(input); }

namespace {

UnitAxis units_of_flatten(UnitGraph& graph, const Flatten& layer, const UnitAxis& input,
                          const Shape& example) {
  const UnitGraph::Units units = graph.along(layer, input, example, input.dim);
  int64_t inner = 1;
  for (int dim = input.dim + 1; dim < example.rank(); ++dim) inner *= example[dim];
  const auto count = static_cast<int64_t>(units.size());
  UnitAxis output;
  for (int64_t i = 0; i < example.numel(); ++i) {
    output.units.push_back(units[static_cast<size_t>(i / inner % count)]);
  }
  return output;
}

}  // namespace

void register_flatten(LayerRegistry& registry) {
  registry.add("flatten", "all of an example's dimensions in one",
               {.make = make_plain<Flatten>,
                .onnx = onnx_operator("Flatten"),
                .units = unit_form(units_of_flatten)});
}

}  // namespace lacuna
