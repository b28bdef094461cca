#include "lacuna/framework/quantize/learned_scales.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "lacuna/framework/autograd/int8/fake_quantize.hpp"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/sparsity/one_shot/weight_grid.hpp"

namespace lacuna {
namespace {

constexpr double kLargestByte = 255.0;

ParameterPtr factor_parameter(const std::string& name, int64_t count) {
  auto factors = std::make_shared<Parameter>(Shape{count}, Initializer::constant(1.0));
  factors->set_name(name);
  factors->requires_dense = true;
  return factors;
}

// A row's 1 / √(numel · largest step) · dL/dscale; gradients of clipped weights become zero.
double row_gradient(std::span<const float> weights, float scale, std::span<float> gradients,
                    bool& clips) {
  double sum = 0.0;
  int64_t nonzeros = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0.0f) continue;
    ++nonzeros;
    const float quotient = weights[i] / scale;
    const auto step = static_cast<float>(grid_step(weights[i], scale));
    if (std::abs(std::nearbyint(quotient)) <= static_cast<float>(kGridSteps)) {
      sum += static_cast<double>(gradients[i]) * static_cast<double>(step - quotient);
      continue;
    }
    sum += static_cast<double>(gradients[i]) * static_cast<double>(step);
    gradients[i] = 0.0f;
    clips = true;
  }
  return sum / std::sqrt(std::max(1.0, static_cast<double>(nonzeros) * kGridSteps));
}

void keep_positive(Parameter& factors) {
  for (float& factor : factors.mutable_values().mutable_storage()) {
    factor = std::max(factor, LearnedScales::kLeastFactor);
  }
}

}  // namespace

std::vector<int64_t> row_begins(const Parameter& weight) {
  const int64_t rows = weight.shape()[0];
  if (!weight.pattern()->is_dense()) {
    const Positions positions = weight.pattern()->positions();
    return {positions.row_begin().begin(), positions.row_begin().end()};
  }
  std::vector<int64_t> begins;
  for (int64_t r = 0; r <= rows; ++r) begins.push_back(r * matrix_columns(weight.shape()));
  return begins;
}

LearnedScales::LearnedScales(const std::vector<ParameterPtr>& weights, bool inputs,
                             const MakeOptimizer& make) {
  std::vector<ParameterPtr> all;
  for (const ParameterPtr& weight : weights) {
    Layer layer{
        .weight = weight,
        .factors = factor_parameter(weight->name() + ".scale", weight->shape()[0]),
        .input_factor = inputs ? factor_parameter(weight->name() + ".input_scale", 1) : nullptr};
    all.push_back(layer.factors);
    if (inputs) all.push_back(layer.input_factor);
    layers_.push_back(std::move(layer));
  }
  optimizer_ = make(std::move(all));
}

void LearnedScales::begin(size_t index, const std::vector<float>& scales,
                          const std::optional<Int8Grid>& input) {
  Layer& layer = layers_[index];
  layer.found = scales;
  layer.found_input = layer.input_factor == nullptr ? std::nullopt : input;
}

void LearnedScales::find_rows(size_t index, const std::vector<float>& scales) {
  std::vector<float>& found = layers_[index].found;
  for (size_t r = 0; r < found.size(); ++r) {
    if (found[r] == 0.0f) found[r] = scales[r];
  }
}

// Without gradients nothing but the count changes.
void LearnedScales::set_steps(int64_t steps) {
  while (optimizer_->steps() < steps) optimizer_->step();
}

std::vector<float> LearnedScales::scales(size_t index) const {
  const Layer& layer = layers_[index];
  std::vector<float> now = layer.found;
  const std::span<const float> factors = std::as_const(*layer.factors).values().storage();
  for (size_t r = 0; r < now.size(); ++r) now[r] *= factors[r];
  return now;
}

std::optional<Int8Grid> LearnedScales::input(size_t index) const {
  const Layer& layer = layers_[index];
  std::optional<Int8Grid> now = layer.found_input;
  if (now) now->scale *= std::as_const(*layer.input_factor).values().storage()[0];
  return now;
}

Variable LearnedScales::on_grid(size_t index, const Variable& x, int64_t rows) const {
  const Layer& layer = layers_[index];
  if (!layer.found_input) return fake_quantize(x, std::nullopt, rows);
  // Shards of a batch are summed as those of the weight are.
  layer.input_factor->set_collector(layer.weight->collector());
  const double features =
      static_cast<double>(x.shape().numel()) / static_cast<double>(std::max<int64_t>(rows, 1));
  return fake_quantize(x, {.grid = *input(index),
                           .parameter = layer.input_factor,
                           .gradient_factor = 1.0 / std::sqrt(features * kLargestByte) /
                                              static_cast<double>(layer.found_input->scale)});
}

void LearnedScales::take_gradient(Layer& layer) {
  if (!layer.weight->has_gradient()) return;
  Parameter& weight = *layer.weight;
  const std::vector<int64_t> begins = row_begins(weight);
  const Tensor values = weight.compacted(weight.values());
  Tensor gradients = weight.compacted(std::as_const(weight).gradient());
  const std::span<const float> from = values.storage();
  const std::span<float> through = gradients.mutable_storage();
  const std::span<const float> factors = std::as_const(*layer.factors).values().storage();
  Tensor taken = Tensor::zeros(layer.factors->shape());
  const std::span<float> into = taken.mutable_storage();
  std::vector<uint8_t> clips(layer.found.size(), 0);
  parallel_for(static_cast<int64_t>(into.size()), 16, [&](int64_t first, int64_t last) {
    for (auto r = static_cast<size_t>(first); r < static_cast<size_t>(last); ++r) {
      if (layer.found[r] == 0.0f) continue;  // a row of zeros
      const auto begin = static_cast<size_t>(begins[r]);
      const size_t count = static_cast<size_t>(begins[r + 1]) - begin;
      bool is_clipped = false;
      into[r] =
          static_cast<float>(row_gradient(from.subspan(begin, count), layer.found[r] * factors[r],
                                          through.subspan(begin, count), is_clipped) /
                             static_cast<double>(layer.found[r]));
      clips[r] = is_clipped ? 1 : 0;
    }
  });
  layer.factors->add_gradient(taken);
  if (std::ranges::find(clips, 1) == clips.end()) return;
  const bool was_pruned = weight.is_pruned();
  weight.mutable_gradient() = weight.expanded(gradients);
  if (was_pruned) weight.mark_pruned();
}

void LearnedScales::step() {
  for (Layer& layer : layers_) take_gradient(layer);
  optimizer_->step();
  optimizer_->zero_grad();
  for (Layer& layer : layers_) {
    keep_positive(*layer.factors);
    if (layer.input_factor != nullptr) keep_positive(*layer.input_factor);
  }
}

StateDict LearnedScales::state_dict() const {
  StateDict state;
  for (const Layer& layer : layers_) {
    StateDict of_layer;
    of_layer.set("found_scales",
                 Tensor::from(Shape{static_cast<int64_t>(layer.found.size())}, layer.found));
    of_layer.set("factors", std::as_const(*layer.factors).values().clone());
    if (layer.found_input) {
      of_layer.set("found_input_scale", static_cast<double>(layer.found_input->scale));
      of_layer.set("input_factor", std::as_const(*layer.input_factor).values().clone());
    }
    state.merge(layer.weight->name(), std::move(of_layer));
  }
  state.merge("optimizer", optimizer_->state_dict());
  return state;
}

namespace {

// Factors as they were saved. *Errors:* CheckpointError.
void load_factors(const StateDict& state, const char* key, Parameter& factors) {
  const Tensor& saved = state.get<Tensor>(key);
  const bool fits =
      saved.shape() == factors.shape() && std::ranges::all_of(saved.storage(), [](float factor) {
        return factor >= LearnedScales::kLeastFactor && std::isfinite(factor);
      });
  if (!fits) {
    throw CheckpointError("'" + std::string(key) + "' of '" + factors.name() + "' are not " +
                          std::to_string(factors.numel()) + " factors of learned scales");
  }
  factors.assign(saved);
}

}  // namespace

void LearnedScales::load_state_dict(const StateDict& state,
                                    const std::vector<std::optional<Int8Grid>>& inputs) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    const StateDict of_layer = state.below(layer.weight->name());
    if (!of_layer.contains("found_scales")) {
      throw CheckpointError("the learned scales of '" + layer.weight->name() +
                            "' are not in the saved state: it was trained with quantize.scales: "
                            "observed");
    }
    layer.found = of_layer.get<Tensor>("found_scales").to_vector();
    const bool fits = static_cast<int64_t>(layer.found.size()) == layer.weight->shape()[0] &&
                      std::ranges::all_of(layer.found, [](float scale) {
                        return scale >= 0.0f && std::isfinite(scale);
                      });
    if (!fits) {
      throw CheckpointError("'found_scales' of '" + layer.weight->name() +
                            "' are not a scale for each output");
    }
    load_factors(of_layer, "factors", *layer.factors);
    if (layer.input_factor == nullptr) continue;
    layer.found_input = inputs[i];
    layer.found_input->scale =
        static_cast<float>(of_layer.number("found_input_scale", 1e-30, 1e30));
    load_factors(of_layer, "input_factor", *layer.input_factor);
  }
  optimizer_->load_state_dict(state.below("optimizer"));
}

}  // namespace lacuna
