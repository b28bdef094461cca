// What a checkpoint holds of quantized layers. How they run is in quantized_layer.cpp.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/quantize/quantized_layer.hpp"

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

[[noreturn]] void refuse_state(const std::string& weight, const std::string& problem) {
  throw CheckpointError("quantized weight '" + weight + "': " + problem);
}

// A step of 0, which no grid has, and no zero.
bool has_float32_inputs(const StateDict& layer) {
  return layer.contains("input_scale") && !layer.contains("input_zero") &&
         layer.number("input_scale", 0.0, 1e30) == 0.0;
}

std::vector<int8_t> values_of(const StateDict& layer) {
  const auto found = layer.values().find(kValues);
  if (found != layer.values().end()) {
    // Earlier checkpoints hold the same bits as bytes without a sign.
    if (const auto* bytes = std::get_if<ByteArray>(&found->second)) {
      std::vector<int8_t> values(bytes->values.size());
      std::ranges::transform(bytes->values, values.begin(),
                             [](uint8_t byte) { return std::bit_cast<int8_t>(byte); });
      return values;
    }
  }
  return layer.get<SignedBytes>(kValues).values;
}

QuantizedLayer read_layer(const StateDict& all, const std::string& weight) {
  const StateDict state = all.below(weight);
  QuantizedLayer layer{.weight = weight};
  layer.values = values_of(state);
  for (const float scale : state.get<Tensor>(kScales).storage()) {
    if (!(scale >= 0.0f) || !std::isfinite(scale)) {
      refuse_state(weight, fmt::format("a scale is {}, and must be a number from 0", scale));
    }
    layer.scales.push_back(scale);
  }
  layer.rounds_inputs = !has_float32_inputs(state);
  if (layer.rounds_inputs) layer.input = input_grid_of(state, weight);
  layer.clipped_weights = state.number("clipped_weights", 0.0, 1.0);
  layer.clipped_inputs = state.number("clipped_inputs", 0.0, 1.0);
  layer.relative_error = state.number("relative_error", 0.0);
  return layer;
}

}  // namespace

std::optional<Int8Grid> input_grid_of(const StateDict& layer, const std::string& weight) {
  if (!layer.contains("input_scale")) return std::nullopt;
  const double scale = layer.number("input_scale", 0.0, 1e30);
  const int64_t zero = layer.count("input_zero", 255);
  if (static_cast<float>(scale) <= 0.0f) refuse_state(weight, "the scale of its inputs is 0");
  return Int8Grid{.scale = static_cast<float>(scale), .zero = static_cast<int32_t>(zero)};
}

StateDict state_of(const std::vector<QuantizedLayer>& layers) {
  StateDict all;
  for (const QuantizedLayer& layer : layers) {
    StateDict state;
    state.set(std::string(kValues),
              SignedBytes{.shape = Shape{static_cast<int64_t>(layer.values.size())},
                          .values = layer.values});
    state.set(std::string(kScales),
              Tensor::from(Shape{static_cast<int64_t>(layer.scales.size())}, layer.scales));
    if (!layer.rounds_inputs) state.set("input_scale", 0.0);
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
  for (const std::string& weight : weights_of(state)) {
    layers.push_back(read_layer(state, weight));
    if (layers.back().rounds_inputs == layers.front().rounds_inputs) continue;
    refuse_state(weight,
                 fmt::format("its inputs are {}rounded, unlike those of '{}'",
                             layers.back().rounds_inputs ? "" : "not ", layers.front().weight));
  }
  return layers;
}

bool have_float32_inputs(const std::vector<QuantizedLayer>& layers) {
  return !layers.empty() && !layers.front().rounds_inputs;
}

}  // namespace lacuna
