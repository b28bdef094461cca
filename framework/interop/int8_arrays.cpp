#include "lacuna/framework/interop/int8_arrays.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/inference/fold_batch_norm.hpp"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/layouts/positions.h"
#include "lacuna/framework/train/weights/bitmask_weight.hpp"
#include "lacuna/framework/train/weights/int8_weight.hpp"

namespace lacuna {
namespace {

constexpr int32_t kSignedZero = 128;

void require_plain_attention(const LoadedRun& run) {
  const Config model = run.config.at("model");
  if (!model.is_map() || model.peek("attention_scale").is_null()) return;
  throw ConfigError(
      "the int8 weights are of a model with `attention_scale`, which this format cannot state; "
      "export with --only float32, or to onnx");
}

// The int8 weight without what its rows were multiplied with: a row of zeros where that was 0.
void take_out(const std::vector<double>& factors, const Positions& positions,
              std::vector<float>& scales, std::vector<int8_t>& values) {
  const std::span<const int64_t> begin = positions.row_begin();
  for (size_t r = 0; r < scales.size(); ++r) {
    const double factor = std::abs(factors[r]);
    scales[r] = factor == 0.0 ? 0.0f : static_cast<float>(static_cast<double>(scales[r]) / factor);
    if (factors[r] >= 0.0) continue;
    for (int64_t i = begin[r]; i < begin[r + 1]; ++i) {
      int8_t& value = values[static_cast<size_t>(i)];
      value = static_cast<int8_t>(-value);
    }
  }
}

// Those of a layer's values, in their order.
Positions positions_of(const LoadedRun& run, const QuantizedLayer& layer) {
  const Pattern& pattern = *run.model->parameter(layer.weight)->pattern();
  Positions positions = pattern.is_dense() ? Positions::all(pattern.shape()) : pattern.positions();
  if (positions.count() != static_cast<int64_t>(layer.values.size())) {
    throw CheckpointError("'" + run.checkpoint + "': the number of int8 values of '" +
                          layer.weight + "' differs from the number of its positions");
  }
  return positions;
}

SignedBytes scattered(const Shape& shape, const Positions& positions,
                      const std::vector<int8_t>& values) {
  SignedBytes dense{.shape = shape,
                    .values = std::vector<int8_t>(static_cast<size_t>(shape.numel()), 0)};
  size_t place = 0;
  positions.for_each([&](int64_t at) { dense.values[static_cast<size_t>(at)] = values[place++]; });
  return dense;
}

}  // namespace

std::vector<QuantizedLayer> int8_layers(const LoadedRun& run) {
  return quantized_layers(CheckpointFile(run.checkpoint).read().state.below("quantized"));
}

SignedBytes dense_int8(const LoadedRun& run, const QuantizedLayer& layer) {
  return scattered(run.model->parameter(layer.weight)->shape(), positions_of(run, layer),
                   layer.values);
}

std::map<std::string, std::string> int8_metadata(const std::vector<QuantizedLayer>& layers,
                                                 std::map<std::string, std::string> metadata) {
  if (have_float32_inputs(layers)) metadata[kRoundsInputs] = "false";
  return metadata;
}

void put_int8(const LoadedRun& run, const std::vector<QuantizedLayer>& layers, Int8Zero zero,
              std::vector<NamedArray>& arrays, bool is_sparse) {
  require_plain_attention(run);
  const auto factors = batch_norm_factors(*run.model, run.inputs.example_shape);
  for (const QuantizedLayer& layer : layers) {
    const ParameterPtr weight = run.model->parameter(layer.weight);
    const Positions positions = positions_of(run, layer);
    std::vector<int8_t> values = layer.values;
    const auto outputs = static_cast<int64_t>(layer.scales.size());
    std::vector<float> scales = layer.scales;
    if (const auto norm = factors.find(layer.weight); norm != factors.end()) {
      take_out(norm->second, positions, scales, values);
      arrays.push_back(
          {layer.weight + "_folded_scale", Tensor::from(Shape{outputs}, layer.scales)});
    }
    const bool is_compact = is_sparse && !weight->pattern()->is_dense();
    const std::string name = layer.weight + std::string(is_compact ? kDataEnding : "");
    for (NamedArray& array : arrays) {
      if (array.name != name) continue;
      array.value = is_compact ? SignedBytes{.shape = Shape{positions.count()}, .values = values}
                               : scattered(weight->shape(), positions, values);
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
