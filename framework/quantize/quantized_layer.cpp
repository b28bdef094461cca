#include "lacuna/framework/quantize/quantized_layer.hpp"

#include <fmt/core.h>

#include <map>
#include <span>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

[[noreturn]] void refuse_layer(const std::string& weight, const std::string& problem) {
  throw CheckpointError("quantized weight '" + weight + "': " + problem);
}

// The positions of a weight, which the values are those of.
Positions positions_of(const QuantizedLayer& quantized, const Parameter& weight) {
  const Pattern& pattern = *weight.pattern();
  Positions positions = pattern.is_dense() ? Positions::all(pattern.shape()) : pattern.positions();
  if (positions.count() != static_cast<int64_t>(quantized.values.size())) {
    refuse_layer(quantized.weight, fmt::format("there are {} int8 values for {} positions",
                                               quantized.values.size(), positions.count()));
  }
  if (static_cast<int64_t>(quantized.scales.size()) != pattern.shape()[0]) {
    refuse_layer(quantized.weight, fmt::format("there are {} scales for {} outputs",
                                               quantized.scales.size(), pattern.shape()[0]));
  }
  return positions;
}

void take_values(const QuantizedLayer& quantized, Parameter& weight) {
  const Positions positions = positions_of(quantized, weight);
  const int64_t columns = matrix_columns(weight.shape());
  Tensor elements = Tensor::empty(Shape{positions.count()});
  const std::span<float> into = elements.mutable_storage();
  size_t place = 0;
  positions.for_each([&](int64_t i) {
    const float scale = quantized.scales[static_cast<size_t>(i / columns)];
    into[place] = scale * static_cast<float>(quantized.values[place]);
    ++place;
  });
  weight.assign_elements(elements);
}

}  // namespace

std::shared_ptr<const Int8Linear> int8_linear_of(const QuantizedLayer& quantized,
                                                 const Linear& layer) {
  const Positions positions = positions_of(quantized, *layer.weight());
  const Shape& shape = layer.weight()->shape();
  auto made = std::make_shared<Int8Linear>();
  made->name = quantized.weight;
  made->weight =
      int8_matrix(shape[0], shape[1], positions.row_begin(), positions.column(), quantized.values);
  made->weight_scales = quantized.scales;
  if (layer.bias() != nullptr) made->bias = layer.bias()->to_dense().to_vector();
  made->input = quantized.input;
  return made;
}

std::shared_ptr<const Int8ConvolutionLayer> int8_convolution_of(const QuantizedLayer& quantized,
                                                                const Conv2d& layer) {
  const Positions positions = positions_of(quantized, *layer.weight());
  const Conv2d::Options& o = layer.options();
  if (o.groups != 1 || o.in_channels % kInt8Group != 0) {
    refuse_layer(quantized.weight, "the model's convolution cannot run in int8");
  }
  auto made = std::make_shared<Int8ConvolutionLayer>();
  made->name = quantized.weight;
  made->weight = int8_filter(o.out_channels, o.in_channels, o.kernel.height * o.kernel.width,
                             positions.row_begin(), positions.column(), quantized.values);
  made->window = {
      .kernel = o.kernel, .stride = o.stride, .padding = o.padding, .dilation = o.dilation};
  made->weight_scales = quantized.scales;
  if (layer.bias() != nullptr) made->bias = layer.bias()->to_dense().to_vector();
  made->input = quantized.input;
  return made;
}

void run_in_int8(Module& model, const StateDict& state) {
  std::map<std::string, Module*> layers;
  for (Module* module : model.modules()) {
    const auto* layer = dynamic_cast<const AffineLayer*>(module);
    if (layer != nullptr) layers[layer->weight()->name()] = module;
  }
  for (const QuantizedLayer& quantized : quantized_layers(state)) {
    const auto found = layers.find(quantized.weight);
    Module* module = found == layers.end() ? nullptr : found->second;
    auto* linear = dynamic_cast<Linear*>(module);
    auto* convolution = dynamic_cast<Conv2d*>(module);
    if (linear == nullptr && convolution == nullptr) {
      refuse_layer(quantized.weight, "the model has no such linear layer or convolution");
    }
    if (!quantized.rounds_inputs) {
      take_values(quantized, linear != nullptr ? *linear->weight() : *convolution->weight());
    } else if (linear != nullptr) {
      linear->run_in_int8(int8_linear_of(quantized, *linear));
    } else {
      convolution->run_in_int8(int8_convolution_of(quantized, *convolution));
    }
  }
}

}  // namespace lacuna
