#include "lacuna/framework/quantize/quantized_layer.hpp"

#include <fmt/core.h>

#include <map>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

[[noreturn]] void refuse_layer(const std::string& weight, const std::string& problem) {
  throw CheckpointError("quantized weight '" + weight + "': " + problem);
}

}  // namespace

std::shared_ptr<const Int8Linear> int8_linear_of(const QuantizedLayer& quantized,
                                                 const Linear& layer) {
  const Parameter& weight = *layer.weight();
  const Pattern& pattern = *weight.pattern();
  const Positions positions =
      pattern.is_dense() ? Positions::all(pattern.shape()) : pattern.positions();
  if (positions.count() != static_cast<int64_t>(quantized.values.size())) {
    refuse_layer(quantized.weight, fmt::format("there are {} int8 values for {} positions",
                                               quantized.values.size(), positions.count()));
  }
  if (static_cast<int64_t>(quantized.scales.size()) != pattern.shape()[0]) {
    refuse_layer(quantized.weight, fmt::format("there are {} scales for {} outputs",
                                               quantized.scales.size(), pattern.shape()[0]));
  }
  auto made = std::make_shared<Int8Linear>();
  made->name = quantized.weight;
  made->weight = int8_matrix(pattern.shape()[0], pattern.shape()[1], positions.row_begin(),
                             positions.column(), quantized.values);
  made->weight_scales = quantized.scales;
  if (layer.bias() != nullptr) made->bias = layer.bias()->to_dense().to_vector();
  made->input = quantized.input;
  return made;
}

void run_in_int8(Module& model, const StateDict& state) {
  std::map<std::string, Linear*> layers;
  for (Module* module : model.modules()) {
    auto* layer = dynamic_cast<Linear*>(module);
    if (layer != nullptr) layers[layer->weight()->name()] = layer;
  }
  for (const QuantizedLayer& quantized : quantized_layers(state)) {
    const auto found = layers.find(quantized.weight);
    if (found == layers.end()) refuse_layer(quantized.weight, "the model has no such linear layer");
    found->second->run_in_int8(int8_linear_of(quantized, *found->second));
  }
}

}  // namespace lacuna
