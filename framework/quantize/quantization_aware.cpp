#include "lacuna/framework/quantize/quantization_aware.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "lacuna/framework/autograd/int8/fake_quantize.hpp"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/affine_layer.h"
#include "lacuna/framework/nn/evaluation_mode.hpp"
#include "lacuna/framework/quantize/activation_ranges.hpp"
#include "lacuna/layers/convolutions/conv2d.h"
#include "lacuna/sparsity/one_shot/weight_grid.hpp"

namespace lacuna {
namespace {

// Each stored value becomes the nearest on its row's grid.
void put_on_grid(Parameter& weight, const std::vector<float>& scales) {
  if (weight.pattern()->stores_every_position()) {
    const std::span<float> values = weight.mutable_values().mutable_storage();
    const auto columns = static_cast<size_t>(matrix_columns(weight.shape()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = on_grid(values[i], scales[i / columns]);
    return;
  }
  const Positions positions = weight.pattern()->positions();
  const std::span<const int64_t> begin = positions.row_begin();
  Tensor elements = weight.compacted(weight.values());
  const std::span<float> values = elements.mutable_storage();
  for (size_t r = 0; r < scales.size(); ++r) {
    for (auto i = static_cast<size_t>(begin[r]); i < static_cast<size_t>(begin[r + 1]); ++i) {
      values[i] = on_grid(values[i], scales[r]);
    }
  }
  weight.assign_elements(elements);
}

// Whether a row without a scale has a value.
bool has_new_rows(const Parameter& weight, const std::vector<float>& scales) {
  if (std::ranges::find(scales, 0.0f) == scales.end()) return false;
  const std::vector<int64_t> begins = row_begins(weight);
  const Tensor elements = weight.compacted(weight.values());
  const std::span<const float> values = elements.storage();
  for (size_t r = 0; r < scales.size(); ++r) {
    if (scales[r] != 0.0f) continue;
    const auto row = values.subspan(static_cast<size_t>(begins[r]),
                                    static_cast<size_t>(begins[r + 1] - begins[r]));
    if (std::ranges::any_of(row, [](float value) { return value != 0.0f; })) return true;
  }
  return false;
}

}  // namespace

struct QuantizationAware::Shared {
  bool is_active = false;
  bool has_static_grids = false;
  std::map<const Module*, Int8Grid> grids = {};
  std::unique_ptr<LearnedScales> learned = {};  // null: scales are observed
};

QuantizationAware::QuantizationAware(Module& model, const std::vector<Int8Candidate>& candidates,
                                     const QuantizeOptions& options, CalibrationRun run,
                                     int64_t begin_step, int64_t freeze_step, int64_t epoch_steps,
                                     const LearnedScales::MakeOptimizer& make)
    : model_(model),
      options_(options),
      run_(std::move(run)),
      begin_step_(begin_step),
      freeze_step_(freeze_step),
      epoch_steps_(std::max<int64_t>(epoch_steps, 1)),
      shared_(std::make_shared<Shared>()) {
  shared_->has_static_grids = options.when == QuantizeOptions::When::Static;
  for (const Int8Candidate& candidate : candidates) {
    if (!candidate.reason.empty()) continue;
    layers_.push_back({.weight = candidate.weight});
    if (options.when == QuantizeOptions::When::None) continue;
    candidate.layer->register_input_transform(
        [shared = shared_, layer = candidate.layer, index = layers_.size() - 1,
         is_convolution = dynamic_cast<Conv2d*>(candidate.layer) != nullptr](const Variable& x) {
          if (!shared->is_active) return x;
          const Shape& shape = x.shape();
          const int64_t rows = is_convolution ? shape[0] : shape.batch();
          if (shared->learned != nullptr) return shared->learned->on_grid(index, x, rows);
          if (!shared->has_static_grids) return fake_quantize(x, std::nullopt, rows);
          return fake_quantize(x, shared->grids.at(layer), rows);
        });
  }
  if (options.scales != QuantizeOptions::Scales::Learned) return;
  std::vector<ParameterPtr> weights;
  for (const Layer& layer : layers_) weights.push_back(layer.weight);
  shared_->learned = std::make_unique<LearnedScales>(weights, shared_->has_static_grids, make);
}

QuantizationAware::~QuantizationAware() { shared_->is_active = false; }

bool QuantizationAware::is_active() const { return shared_->is_active; }

bool QuantizationAware::learns() const { return shared_->learned != nullptr; }

void QuantizationAware::begin_step(int64_t steps_before) {
  if (steps_before < begin_step_ || is_frozen_) return;
  const int64_t since = steps_before - freeze_step_;
  const bool freezes = since >= 0 && since % epoch_steps_ == 0 && !learns();
  if (is_active() && !freezes) return;
  find_grids();
  if (learns()) shared_->learned->set_steps(steps_before);
  is_frozen_ = freezes;
}

void QuantizationAware::find_grids() {
  shared_->is_active = false;  // by float32 activations
  for (Layer& layer : layers_) {
    layer.scales = grid_scales(layer.weight->to_dense(), options_.clip);
  }
  if (shared_->has_static_grids) {
    std::vector<ParameterPtr> weights;
    for (const Layer& layer : layers_) weights.push_back(layer.weight);
    const EvaluationMode evaluates(model_);
    const std::vector<ActivationRange> ranges = activation_ranges(model_, run_, weights, options_);
    for (size_t i = 0; i < ranges.size(); ++i) layers_[i].input = ranges[i].grid;
  }
  for (size_t i = 0; learns() && i < layers_.size(); ++i) {
    shared_->learned->begin(i, layers_[i].scales, layers_[i].input);
  }
  activate();
}

void QuantizationAware::step() {
  if (!learns() || !is_active()) return;
  shared_->learned->step();
  take_learned();
}

void QuantizationAware::follow_masks(std::span<const MaskUpdate> updates) {
  if (!is_active()) return;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    const bool is_changed = std::ranges::any_of(updates, [&](const MaskUpdate& update) {
      return update.parameter == layer.weight->name() && update.dropped + update.grown > 0;
    });
    if (!is_changed && !has_new_rows(*layer.weight, layer.scales)) continue;
    const std::vector<float> found = grid_scales(layer.weight->to_dense(), options_.clip);
    if (learns()) {
      shared_->learned->find_rows(i, found);
      layer.scales = shared_->learned->scales(i);
      continue;
    }
    for (size_t r = 0; r < found.size(); ++r) {
      if (is_changed || layer.scales[r] == 0.0f) layer.scales[r] = found[r];
    }
    if (is_changed) is_frozen_ = false;
  }
}

// Learned scales as they are now.
void QuantizationAware::take_learned() {
  for (size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].scales = shared_->learned->scales(i);
    layers_[i].input = shared_->learned->input(i);
  }
}

// The grids that transforms look up.
void QuantizationAware::activate() {
  for (Module* module : model_.modules()) {
    const auto* affine = dynamic_cast<const AffineLayer*>(module);
    if (affine == nullptr) continue;
    for (const Layer& layer : layers_) {
      if (layer.weight == affine->weight() && layer.input) shared_->grids[affine] = *layer.input;
    }
  }
  shared_->is_active = true;
}

StateDict QuantizationAware::state_dict() const {
  StateDict state;
  if (!is_active()) return state;
  for (const Layer& layer : layers_) {
    StateDict of_layer;
    of_layer.set("scales",
                 Tensor::from(Shape{static_cast<int64_t>(layer.scales.size())}, layer.scales));
    if (layer.input) {
      of_layer.set("input_scale", static_cast<double>(layer.input->scale));
      of_layer.set("input_zero", static_cast<int64_t>(layer.input->zero));
    }
    of_layer.set("is_frozen", static_cast<int64_t>(is_frozen_ ? 1 : 0));
    state.merge(layer.weight->name(), std::move(of_layer));
  }
  if (learns()) {
    const StateDict learned = shared_->learned->state_dict();
    for (const auto& [name, value] : learned.values()) state.set(name, value);
  }
  return state;
}

void QuantizationAware::load_state_dict(const StateDict& state) {
  if (state.empty()) return;
  for (Layer& layer : layers_) {
    const StateDict of_layer = state.below(layer.weight->name());
    if (of_layer.empty()) {
      throw CheckpointError("the grids of '" + layer.weight->name() +
                            "' are not in the saved state of `quantize.algorithm: qat`");
    }
    layer.scales = of_layer.get<Tensor>("scales").to_vector();
    if (static_cast<int64_t>(layer.scales.size()) != layer.weight->shape()[0]) {
      throw CheckpointError("the grid of '" + layer.weight->name() + "' has " +
                            std::to_string(layer.scales.size()) + " scales for " +
                            std::to_string(layer.weight->shape()[0]) + " outputs");
    }
    layer.input = input_grid_of(of_layer, layer.weight->name());
    if (layer.input.has_value() != shared_->has_static_grids) {
      throw CheckpointError("the grid of the inputs of '" + layer.weight->name() +
                            "' is not that of quantize.activations.when");
    }
    is_frozen_ = of_layer.count("is_frozen", 1) == 1;
  }
  if (learns()) {
    std::vector<std::optional<Int8Grid>> inputs;
    for (const Layer& layer : layers_) inputs.push_back(layer.input);
    shared_->learned->load_state_dict(state, inputs);
    take_learned();
  }
  activate();
}

FakeWeights::FakeWeights(QuantizationAware* quantization) {
  if (quantization == nullptr || !quantization->is_active()) return;
  for (const QuantizationAware::Layer& layer : quantization->layers_) {
    kept_.push_back({layer.weight, layer.weight->pattern(), layer.weight->values().clone()});
    put_on_grid(*layer.weight, layer.scales);
  }
}

FakeWeights::~FakeWeights() {
  for (Kept& kept : kept_) {
    if (kept.weight->pattern() != kept.pattern) continue;
    kept.weight->mutable_values() = std::move(kept.values);
  }
}

std::vector<KnownGrid> trained_grids(const StateDict& state, const Module& model) {
  std::vector<KnownGrid> known;
  for (const ParameterPtr& parameter : model.parameters()) {
    const StateDict of_layer = state.below(parameter->name());
    if (of_layer.empty()) continue;
    std::vector<float> scales = of_layer.get<Tensor>("scales").to_vector();
    if (static_cast<int64_t>(scales.size()) != parameter->shape()[0]) {
      throw CheckpointError("the grid of '" + parameter->name() +
                            "' has a different number of scales than the weight has outputs");
    }
    known.push_back(
        known_grid(*parameter, std::move(scales), input_grid_of(of_layer, parameter->name())));
  }
  return known;
}

}  // namespace lacuna
