#include "lacuna/framework/interop/int8_arrays.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/inference/fold_batch_norm.hpp"
#include "lacuna/framework/io/checkpoint.h"

namespace lacuna {
namespace {

constexpr int32_t kSignedZero = 128;

void require_plain_attention(const LoadedRun& run) {
  const Config model = run.config.at("model");
  if (!model.is_map() || model.peek("attention_scale").is_null()) return;
  throw ConfigError(
      "the int8 weights are of a model with `attention_scale`, which this format cannot state; "
      "export by --only float32, or to onnx");
}

// The int8 weight without what its rows were multiplied with: a row of zeros where that was 0.
void take_out(const std::vector<double>& factors, std::vector<float>& scales, SignedBytes& dense) {
  const size_t columns = dense.values.size() / std::max<size_t>(scales.size(), 1);
  for (size_t r = 0; r < scales.size(); ++r) {
    const double factor = std::abs(factors[r]);
    scales[r] = factor == 0.0 ? 0.0f : static_cast<float>(static_cast<double>(scales[r]) / factor);
    if (factors[r] >= 0.0) continue;
    for (size_t i = r * columns; i < (r + 1) * columns; ++i) {
      dense.values[i] = static_cast<int8_t>(-dense.values[i]);
    }
  }
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
    throw CheckpointError("'" + run.checkpoint + "': the number of int8 values of '" +
                          layer.weight + "' differs from the number of its positions");
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
  require_plain_attention(run);
  const auto factors = batch_norm_factors(*run.model, run.inputs.example_shape);
  for (const QuantizedLayer& layer : layers) {
    SignedBytes dense = dense_int8(run, layer);
    const auto outputs = static_cast<int64_t>(layer.scales.size());
    std::vector<float> scales = layer.scales;
    if (const auto norm = factors.find(layer.weight); norm != factors.end()) {
      take_out(norm->second, scales, dense);
      arrays.push_back(
          {layer.weight + "_folded_scale", Tensor::from(Shape{outputs}, layer.scales)});
    }
    for (NamedArray& array : arrays) {
      if (array.name == layer.weight) array.value = std::move(dense);
    }
    arrays.push_back({layer.weight + "_scale", Tensor::from(Shape{outputs, 1}, scales)});
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
