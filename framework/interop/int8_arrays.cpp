#include "lacuna/framework/interop/int8_arrays.hpp"

#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/nn/batch_user.h"

namespace lacuna {
namespace {

constexpr int32_t kSignedZero = 128;

void require_alone(const LoadedRun& run) {
  for (const Module* module : run.model->modules()) {
    if (dynamic_cast<const BatchUser*>(module) == nullptr) continue;
    throw ConfigError("layer '" + module->path() + "' (" + std::string(module->type()) +
                      ") is folded into int8 weights, which no file can state next to it; export "
                      "the run that this one was made from, by --only float32, or to onnx");
  }
  const Config model = run.config.at("model");
  if (!model.is_map() || model.peek("attention_scale").is_null()) return;
  throw ConfigError(
      "the int8 weights are of a model with `attention_scale`, which this format cannot state; "
      "export by --only float32, or to onnx");
}

}  // namespace

std::vector<QuantizedLayer> int8_layers(const LoadedRun& run) {
  return quantized_layers(CheckpointFile(run.checkpoint).read().state.below("quantized"));
}

SignedBytes dense_int8(const LoadedRun& run, const QuantizedLayer& layer) {
  const ParameterPtr weight = run.model->parameter(layer.weight);
  const Pattern& pattern = *weight->pattern();
  const Positions positions =
      pattern.is_dense() ? Positions::all(pattern.shape()) : pattern.positions();
  if (positions.count() != static_cast<int64_t>(layer.values.size())) {
    throw CheckpointError("'" + run.checkpoint + "': the int8 values of '" + layer.weight +
                          "' are not as many as its positions");
  }
  SignedBytes dense{.shape = pattern.shape(),
                    .values = std::vector<int8_t>(static_cast<size_t>(pattern.numel()), 0)};
  size_t place = 0;
  positions.for_each(
      [&](int64_t at) { dense.values[static_cast<size_t>(at)] = layer.values[place++]; });
  return dense;
}

void put_int8(const LoadedRun& run, const std::vector<QuantizedLayer>& layers, Int8Zero zero,
              std::vector<NamedArray>& arrays) {
  require_alone(run);
  for (const QuantizedLayer& layer : layers) {
    SignedBytes dense = dense_int8(run, layer);
    for (NamedArray& array : arrays) {
      if (array.name == layer.weight) array.value = std::move(dense);
    }
    const auto outputs = static_cast<int64_t>(layer.scales.size());
    arrays.push_back({layer.weight + "_scale", Tensor::from(Shape{outputs, 1}, layer.scales)});
    if (!layer.input) continue;
    const std::string stem = layer.weight.substr(0, layer.weight.rfind('.') + 1);
    arrays.push_back({stem + "input_scale", Tensor::full(Shape{1}, layer.input->scale)});
    const int32_t byte = layer.input->zero;
    if (zero == Int8Zero::Byte) {
      arrays.push_back({stem + "input_zero_point", std::vector<int32_t>{byte}});
    } else {
      arrays.push_back(
          {stem + "input_zero_point",
           SignedBytes{.shape = Shape{1}, .values = {static_cast<int8_t>(byte - kSignedZero)}}});
    }
  }
}

}  // namespace lacuna
