#include "lacuna/framework/quantize/float32_values.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/quantize/quantized_layer.hpp"

namespace lacuna {
namespace {

[[noreturn]] void refuse_values(const QuantizedLayer& layer, size_t positions) {
  throw CheckpointError(
      fmt::format("quantized weight '{}': there are {} int8 values for {} "
                  "positions",
                  layer.weight, layer.values.size(), positions));
}

// The values of nonzeros, row by row.
Tensor compressed_values(const QuantizedLayer& layer, const std::vector<int64_t>& indptr) {
  const size_t count = layer.values.size();
  if (indptr.size() != layer.scales.size() + 1 || indptr.front() != 0 ||
      indptr.back() != static_cast<int64_t>(count)) {
    refuse_values(layer, indptr.empty() ? 0 : static_cast<size_t>(indptr.back()));
  }
  std::vector<float> values(count);
  for (size_t row = 0; row + 1 < indptr.size(); ++row) {
    if (indptr[row] > indptr[row + 1] || indptr[row] < 0) refuse_values(layer, count);
    for (auto i = static_cast<size_t>(indptr[row]); i < static_cast<size_t>(indptr[row + 1]); ++i) {
      values[i] = layer.scales[row] * static_cast<float>(layer.values[i]);
    }
  }
  return Tensor::from(Shape{static_cast<int64_t>(count)}, values);
}

// The key of the shape of a dense weight that is no matrix, and whose float32 values are left out.
std::string shape_key(const std::string& weight) { return weight + "/shape"; }

// The key of the scales of a weight that a batch_norm was folded into, as they are without it.
std::string unfolded_key(const std::string& weight) { return weight + "/unfolded_scales"; }

// A row whose factor is 0, or too small for float32, has values of 0 alone, whatever its scale.
Tensor unfolded_scales(const QuantizedLayer& layer, const std::vector<double>& factors) {
  Tensor scales = Tensor::zeros(Shape{static_cast<int64_t>(layer.scales.size())});
  for (size_t r = 0; r < layer.scales.size(); ++r) {
    const auto scale = static_cast<float>(static_cast<double>(layer.scales[r]) / factors[r]);
    if (std::isfinite(scale)) scales.mutable_data()[r] = scale;
  }
  return scales;
}

bool is_left_out(const StateDict& model, const std::string& weight) {
  return !model.contains(weight) && !model.contains(weight + "/values");
}

// Of a dense weight whose rows have as many values each; `sizes` empty: of a matrix.
Shape dense_shape(const QuantizedLayer& layer, const std::vector<int64_t>& sizes) {
  const auto rows = static_cast<int64_t>(layer.scales.size());
  const auto all = static_cast<int64_t>(layer.values.size());
  if (sizes.empty()) return Shape{rows, all / rows};
  int64_t left = all;
  for (const int64_t size : sizes) left = size > 0 && left % size == 0 ? left / size : 0;
  if (sizes.front() != rows || left != 1) {
    throw CheckpointError(
        fmt::format("quantized weight '{}': its shape does not fit {} int8 "
                    "values for {} outputs",
                    layer.weight, all, rows));
  }
  return Shape(sizes);
}

// All values, with zeros where the mask (null: none) has none.
Tensor dense_values(const QuantizedLayer& layer, const ByteArray* mask,
                    const std::vector<int64_t>& sizes) {
  const size_t rows = layer.scales.size();
  const size_t all = mask != nullptr ? mask->values.size() : layer.values.size();
  if (rows == 0 || all % rows != 0) refuse_values(layer, all);
  const size_t columns = all / rows;
  Tensor values = Tensor::zeros(mask != nullptr ? mask->shape : dense_shape(layer, sizes));
  size_t place = 0;
  for (size_t i = 0; i < all; ++i) {
    if (mask != nullptr && mask->values[i] == 0) continue;
    if (place == layer.values.size()) refuse_values(layer, place + 1);
    values.mutable_data()[i] =
        layer.scales[i / columns] * static_cast<float>(layer.values[place++]);
  }
  if (place != layer.values.size()) refuse_values(layer, place);
  return values;
}

}  // namespace

StateDict without_float32(const StateDict& state,
                          const std::map<std::string, std::vector<double>>& factors) {
  std::set<std::string> dropped;
  StateDict kept;
  for (const QuantizedLayer& layer : quantized_layers(state.below("quantized"))) {
    dropped.insert(layer.weight);
    dropped.insert(layer.weight + "/values");
    const auto norm = factors.find(layer.weight);
    if (norm == factors.end()) continue;
    kept.set(unfolded_key(layer.weight), unfolded_scales(layer, norm->second));
  }
  const StateDict model = state.below("model");
  for (const auto& [name, value] : model.values()) {
    if (!dropped.contains(name)) {
      kept.set(name, value);
    } else if (const auto* dense = std::get_if<Tensor>(&value);
               dense != nullptr && dense->shape().rank() > 2 && !model.contains(name + "_mask")) {
      const auto sizes = dense->shape().sizes();
      kept.set(shape_key(name), std::vector<int64_t>(sizes.begin(), sizes.end()));
    }
  }
  return kept;
}

bool lacks_float32(const StateDict& state) {
  const StateDict model = state.below("model");
  return std::ranges::any_of(
      quantized_layers(state.below("quantized")),
      [&](const QuantizedLayer& layer) { return is_left_out(model, layer.weight); });
}

StateDict model_state(const StateDict& state) {
  StateDict model = state.below("model");
  const StateDict quantized = state.below("quantized");
  if (quantized.empty()) return model;
  for (QuantizedLayer& layer : quantized_layers(quantized)) {
    const std::string& name = layer.weight;
    if (!is_left_out(model, name)) continue;
    if (model.contains(unfolded_key(name))) {
      std::vector<float> scales = model.get<Tensor>(unfolded_key(name)).to_vector();
      const bool is_finite = std::ranges::all_of(scales, [](float v) { return std::isfinite(v); });
      if (scales.size() != layer.scales.size() || !is_finite) {
        throw CheckpointError(
            fmt::format("quantized weight '{}': its unfolded scales are not one finite number for "
                        "each of its {} outputs",
                        name, layer.scales.size()));
      }
      layer.scales = std::move(scales);
      model.erase(unfolded_key(name));
    }
    if (model.contains(name + "/indptr")) {
      model.set(name + "/values",
                compressed_values(layer, model.get<std::vector<int64_t>>(name + "/indptr")));
      continue;
    }
    const bool is_masked = model.contains(name + "_mask");
    std::vector<int64_t> sizes;
    if (model.contains(shape_key(name))) {
      sizes = model.get<std::vector<int64_t>>(shape_key(name));
      model.erase(shape_key(name));
    }
    model.set(name, dense_values(layer, is_masked ? &model.get<ByteArray>(name + "_mask") : nullptr,
                                 sizes));
  }
  return model;
}

}  // namespace lacuna
