#include "lacuna/framework/quantize/quantize_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/quantize/activation_ranges.hpp"
#include "lacuna/sparsity/one_shot/one_shot.h"
#include "lacuna/sparsity/one_shot/weight_grid.hpp"

namespace lacuna {
namespace {

MaskSet mask_of(const Parameter& weight) {
  const Pattern& pattern = *weight.pattern();
  return pattern.is_dense() ? MaskSet::all(pattern.shape())
                            : MaskSet(pattern.shape(), pattern.mask());
}

Tensor rounded_to(const std::vector<float>& scales, const Tensor& weight) {
  Tensor rounded = Tensor::empty(weight.shape());
  const auto columns = static_cast<size_t>(matrix_columns(weight.shape()));
  const std::span<const float> from = weight.storage();
  const std::span<float> into = rounded.mutable_storage();
  for (size_t i = 0; i < from.size(); ++i) into[i] = on_grid(from[i], scales[i / columns]);
  return rounded;
}

// Weights of inputs that were always zero, of which the examples say nothing, are rounded.
void keep_dead_inputs(const InputGram& gram, const Tensor& rounded, const MaskSet& mask,
                      Tensor& weight) {
  const std::vector<double> squares = gram.squares();
  mask.positions().for_each([&](int64_t i) {
    const auto column = static_cast<size_t>(i) % squares.size();
    if (squares[column] == 0.0) weight.mutable_data()[i] = rounded.data()[i];
  });
}

double clipped_share(const Tensor& weight, const std::vector<float>& scales, int64_t nnz) {
  const std::span<const float> values = weight.storage();
  const auto columns = static_cast<size_t>(matrix_columns(weight.shape()));
  int64_t clipped = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const float reach = scales[i / columns] * (static_cast<float>(kGridSteps) + 0.5f);
    clipped += std::abs(values[i]) > reach ? 1 : 0;
  }
  return nnz == 0 ? 0.0 : static_cast<double>(clipped) / static_cast<double>(nnz);
}

class Quantizer {
 public:
  Quantizer(Module& model, const QuantizeOptions& options, const CalibrationRun& run,
            const std::vector<KnownGrid>& known)
      : model_(model), options_(options), run_(run), known_(known) {}

  void quantize_weight(const CalibratedLayer& layer) {
    Parameter& parameter = *layer.weight;
    const Tensor weight = parameter.to_dense();
    const MaskSet mask = mask_of(parameter);
    for (const float v : weight.storage()) {
      if (!std::isfinite(v)) {
        throw DataError("'" + parameter.name() + "' has values that are NaN or infinite");
      }
    }
    const auto known = std::ranges::find_if(
        known_, [&](const KnownGrid& grid) { return grid.layer.weight == parameter.name(); });
    if (known != known_.end()) return take(*known, weight, mask, parameter);
    const std::vector<float> scales = grid_scales(weight, options_.clip);
    QuantizedLayer quantized{.weight = parameter.name(),
                             .scales = scales,
                             .clipped_weights = clipped_share(weight, scales, mask.count())};
    const Tensor result = options_.algorithm == QuantizeOptions::Algorithm::Gptq
                              ? by_gptq(layer, weight, mask, quantized)
                              : by_rounding(weight, quantized);
    mask.positions().for_each([&](int64_t i) {
      const auto row = static_cast<size_t>(i / matrix_columns(weight.shape()));
      quantized.values.push_back(grid_step(result.data()[i], scales[row]));
    });
    parameter.assign(result);
    done_.layers.push_back(std::move(quantized));
  }

  void add_ranges(const std::vector<ParameterPtr>& weights) {
    const auto has_grid = [](const QuantizedLayer& layer) { return layer.input.has_value(); };
    if (std::ranges::all_of(done_.layers, has_grid)) return;
    const std::vector<ActivationRange> ranges = activation_ranges(model_, run_, weights, options_);
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (has_grid(done_.layers[i])) continue;
      done_.layers[i].input = ranges[i].grid;
      done_.layers[i].clipped_inputs = ranges[i].clipped;
    }
  }

  // Known layers may have the ranges of a training.
  void remove_ranges(bool rounds_inputs) {
    for (QuantizedLayer& layer : done_.layers) {
      layer.input.reset();
      layer.clipped_inputs = 0.0;
      layer.rounds_inputs = rounds_inputs;
    }
  }

  QuantizedModel take() { return std::move(done_); }

 private:
  // Values stay; scales take up what the rows were multiplied with since, and values its sign.
  void take(const KnownGrid& known, const Tensor& weight, const MaskSet& mask,
            Parameter& parameter) {
    QuantizedLayer layer = known.layer;
    if (static_cast<int64_t>(layer.values.size()) != mask.count() ||
        static_cast<int64_t>(layer.scales.size()) != weight.shape()[0]) {
      throw StateError("the known int8 values of '" + layer.weight + "' belong to another mask");
    }
    const int64_t columns = matrix_columns(weight.shape());
    std::vector<int8_t> signs(layer.scales.size(), 1);
    for (size_t r = 0; r < layer.scales.size(); ++r) {
      const std::span<const float> was = known.weight.storage().subspan(
          r * static_cast<size_t>(columns), static_cast<size_t>(columns));
      const auto largest =
          std::ranges::max_element(was, [](float a, float b) { return std::abs(a) < std::abs(b); });
      if (largest == was.end() || *largest == 0.0f) continue;
      const size_t at = static_cast<size_t>(largest - was.begin());
      const float now = weight.data()[static_cast<int64_t>(r) * columns + static_cast<int64_t>(at)];
      if (now == *largest) continue;
      layer.scales[r] *= std::abs(now / *largest);
      signs[r] = now / *largest < 0.0f ? -1 : 1;
    }
    Tensor result = Tensor::zeros(weight.shape());
    size_t place = 0;
    mask.positions().for_each([&](int64_t i) {
      const auto row = static_cast<size_t>(i / columns);
      int8_t& value = layer.values[place++];
      value = static_cast<int8_t>(value * signs[row]);
      result.mutable_data()[i] = layer.scales[row] * static_cast<float>(value);
    });
    parameter.assign(result);
    done_.layers.push_back(std::move(layer));
  }

  static Tensor by_rounding(const Tensor& weight, QuantizedLayer& quantized) {
    Tensor rounded = rounded_to(quantized.scales, weight);
    quantized.relative_error = relative_output_error(
        weight, rounded, InputGram::of_independent(matrix_columns(weight.shape())));
    return rounded;
  }

  Tensor by_gptq(const CalibratedLayer& layer, const Tensor& weight, const MaskSet& mask,
                 QuantizedLayer& quantized) {
    const std::vector<InputGram> grams = collect_inputs(model_, run_, layer);
    OneShotOptions sweep = OneShotOptions::defaults(OneShotMethod::SparseGpt);
    sweep.grid_scales = quantized.scales;
    const MaskSelector any(ScoreGroups(), PatternShape(), weight.shape());
    PrunedWeight swept =
        prune_one_shot(quantized.weight, weight, grams.front(), any, mask.count(), &mask, sweep);
    keep_dead_inputs(grams.front(), rounded_to(quantized.scales, weight), mask, swept.weight);
    quantized.relative_error = relative_output_error(weight, swept.weight, grams.front());
    std::ranges::move(swept.messages, std::back_inserter(done_.messages));
    return swept.weight;
  }

  Module& model_;
  const QuantizeOptions& options_;
  const CalibrationRun& run_;
  const std::vector<KnownGrid>& known_;
  QuantizedModel done_;
};

}  // namespace

KnownGrid known_grid(const Parameter& parameter, std::vector<float> scales,
                     std::optional<Int8Grid> input) {
  KnownGrid known{.layer = {.weight = parameter.name(), .scales = std::move(scales)},
                  .weight = parameter.to_dense()};
  known.layer.input = input;
  const int64_t columns = matrix_columns(parameter.shape());
  mask_of(parameter).positions().for_each([&](int64_t i) {
    known.layer.values.push_back(
        grid_step(known.weight.data()[i], known.layer.scales[static_cast<size_t>(i / columns)]));
  });
  known.layer.clipped_weights =
      clipped_share(known.weight, known.layer.scales, parameter.pattern()->nnz());
  return known;
}

QuantizedModel quantize_model(Module& model, const std::vector<Int8Candidate>& candidates,
                              const QuantizeOptions& options, const CalibrationRun& run,
                              const std::vector<KnownGrid>& known) {
  std::vector<ParameterPtr> weights;
  for (const Int8Candidate& candidate : candidates) {
    if (candidate.reason.empty()) weights.push_back(candidate.weight);
  }
  std::vector<CalibratedLayer> layers;
  if (options.needs_examples()) {
    layers = layers_in_order(model, run, weights);
    for (const ParameterPtr& weight : weights) {
      if (std::ranges::find(layers, weight, &CalibratedLayer::weight) != layers.end()) continue;
      throw ConfigError("the forward pass of the model never multiplies by '" + weight->name() +
                        "'; exclude it with param_filter");
    }
    weights.clear();
    for (const CalibratedLayer& layer : layers) weights.push_back(layer.weight);
  } else {
    for (const ParameterPtr& weight : weights) layers.push_back({.weight = weight});
  }
  Quantizer quantizer(model, options, run, known);
  for (const CalibratedLayer& layer : layers) quantizer.quantize_weight(layer);
  if (options.when == QuantizeOptions::When::Static) {
    quantizer.add_ranges(weights);
  } else {
    quantizer.remove_ranges(options.when == QuantizeOptions::When::Dynamic);
  }
  return quantizer.take();
}

}  // namespace lacuna
