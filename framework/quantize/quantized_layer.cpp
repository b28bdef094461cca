#include "lacuna/framework/quantize/quantized_layer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

constexpr std::string_view kValues = "values", kScales = "scales";

std::vector<std::string> weights_of(const StateDict& state) {
  std::set<std::string> names;
  for (const auto& [name, value] : state.values()) {
    const size_t slash = name.rfind('/');
    if (slash != std::string::npos) names.insert(name.substr(0, slash));
  }
  return {names.begin(), names.end()};
}

[[noreturn]] void refuse_layer(const std::string& weight, const std::string& problem) {
  throw CheckpointError("quantized weight '" + weight + "': " + problem);
}

QuantizedLayer read_layer(const StateDict& all, const std::string& weight) {
  const StateDict state = all.below(weight);
  QuantizedLayer layer{.weight = weight};
  for (const uint8_t byte : state.get<ByteArray>(kValues).values) {
    layer.values.push_back(std::bit_cast<int8_t>(byte));
  }
  for (const float scale : state.get<Tensor>(kScales).storage()) {
    if (!(scale >= 0.0f) || !std::isfinite(scale)) {
      refuse_layer(weight, fmt::format("a scale is {}, and must be a number from 0", scale));
    }
    layer.scales.push_back(scale);
  }
  if (state.contains("input_scale")) {
    const double scale = state.number("input_scale", 0.0, 1e30);
    const int64_t zero = state.count("input_zero", 255);
    if (static_cast<float>(scale) <= 0.0f) refuse_layer(weight, "the scale of its inputs is 0");
    layer.input = Int8Grid{.scale = static_cast<float>(scale), .zero = static_cast<int32_t>(zero)};
  }
  layer.clipped_weights = state.number("clipped_weights", 0.0, 1.0);
  layer.clipped_inputs = state.number("clipped_inputs", 0.0, 1.0);
  layer.relative_error = state.number("relative_error", 0.0);
  return layer;
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

}  // namespace

StateDict state_of(const std::vector<QuantizedLayer>& layers) {
  StateDict all;
  for (const QuantizedLayer& layer : layers) {
    StateDict state;
    ByteArray values{.shape = Shape{static_cast<int64_t>(layer.values.size())}, .values = {}};
    for (const int8_t value : layer.values) values.values.push_back(std::bit_cast<uint8_t>(value));
    state.set(std::string(kValues), std::move(values));
    state.set(std::string(kScales),
              Tensor::from(Shape{static_cast<int64_t>(layer.scales.size())}, layer.scales));
    if (layer.input) {
      state.set("input_scale", static_cast<double>(layer.input->scale));
      state.set("input_zero", static_cast<int64_t>(layer.input->zero));
    }
    state.set("clipped_weights", layer.clipped_weights);
    state.set("clipped_inputs", layer.clipped_inputs);
    // An output that was always zero has no relative error.
    state.set("relative_error", std::isfinite(layer.relative_error) ? layer.relative_error : 1.0);
    all.merge(layer.weight, std::move(state));
  }
  return all;
}

std::vector<QuantizedLayer> quantized_layers(const StateDict& state) {
  std::vector<QuantizedLayer> layers;
  for (const std::string& weight : weights_of(state)) layers.push_back(read_layer(state, weight));
  return layers;
}

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
    refuse_layer(quantized.weight, "the model's convolution has no product in int8");
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
    if (auto* linear = dynamic_cast<Linear*>(module)) {
      linear->run_in_int8(int8_linear_of(quantized, *linear));
    } else if (auto* convolution = dynamic_cast<Conv2d*>(module)) {
      convolution->run_in_int8(int8_convolution_of(quantized, *convolution));
    } else {
      refuse_layer(quantized.weight, "the model has no such linear layer or convolution");
    }
  }
}

}  // namespace lacuna
