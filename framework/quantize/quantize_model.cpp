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
  Quantizer(Module& model, const QuantizeOptions& options, const CalibrationRun& run)
      : model_(model), options_(options), run_(run) {}

  void quantize_weight(const CalibratedLayer& layer) {
    Parameter& parameter = *layer.weight;
    const Tensor weight = parameter.to_dense();
    const MaskSet mask = mask_of(parameter);
    for (const float v : weight.storage()) {
      if (!std::isfinite(v)) {
        throw DataError("'" + parameter.name() + "' has values that are NaN or infinite");
      }
    }
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
    const std::vector<ActivationRange> ranges = activation_ranges(model_, run_, weights, options_);
    for (size_t i = 0; i < ranges.size(); ++i) {
      done_.layers[i].input = ranges[i].grid;
      done_.layers[i].clipped_inputs = ranges[i].clipped;
    }
  }

  QuantizedModel take() { return std::move(done_); }

 private:
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
  QuantizedModel done_;
};

}  // namespace

QuantizedModel quantize_model(Module& model, const std::vector<Int8Candidate>& candidates,
                              const QuantizeOptions& options, const CalibrationRun& run) {
  std::vector<ParameterPtr> weights;
  for (const Int8Candidate& candidate : candidates) {
    if (candidate.reason.empty()) weights.push_back(candidate.weight);
  }
  std::vector<CalibratedLayer> layers;
  if (options.needs_examples()) {
    layers = layers_in_order(model, run, weights);
    for (const ParameterPtr& weight : weights) {
      if (std::ranges::find(layers, weight, &CalibratedLayer::weight) != layers.end()) continue;
      throw ConfigError("the model's forward pass never multiplies with '" + weight->name() +
                        "'; leave it out by param_filter");
    }
    weights.clear();
    for (const CalibratedLayer& layer : layers) weights.push_back(layer.weight);
  } else {
    for (const ParameterPtr& weight : weights) layers.push_back({.weight = weight});
  }
  Quantizer quantizer(model, options, run);
  for (const CalibratedLayer& layer : layers) quantizer.quantize_weight(layer);
  if (options.when == QuantizeOptions::When::Static) quantizer.add_ranges(weights);
  return quantizer.take();
}

}  // namespace lacuna
