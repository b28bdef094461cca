// What an experiment has ahead of it; what of it is saved, and how it, or its model alone, is
// loaded again.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/config/earlier_keys.hpp"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/inference/fold_batch_norm.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/quantize/float32_values.hpp"
#include "lacuna/framework/quantize/quantization_aware.hpp"
#include "lacuna/framework/quantize/quantized_layer.hpp"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/checks/column_checks.hpp"
#include "lacuna/framework/train/checks/model_checks.hpp"
#include "lacuna/framework/train/checks/run_origins.hpp"
#include "lacuna/framework/train/checks/vocabulary_checks.hpp"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/framework/train/parts/density_limits.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/parts/float32_model.hpp"
#include "lacuna/framework/train/parts/parametrization.hpp"
#include "lacuna/sparsity/sparsify.h"

namespace lacuna {

namespace {

// Ids and labels must mean the same tokens and classes.
void require_same_names(const DataSplits& data, const StateDict& state) {
  if (!state.contains("data/example_shape")) return;
  const InputFormat saved = InputFormat::from_state(state.below("data"));
  require_learned_vocabulary(*data.train, saved.tokenizer);
  const std::string moved =
      compare_columns(
          {.inputs = saved.columns, .label = saved.label_column, .categories = saved.categories},
          {.inputs = data.columns, .label = data.label_column, .categories = data.categories})
          .moved;
  if (!moved.empty()) throw CheckpointError("the training data: " + moved);
  if (!saved.class_names.empty() && saved.class_names != data.train->class_names()) {
    throw CheckpointError(
        "the data's classes have other names than those that the run was trained with; a run can "
        "only continue on the same data");
  }
}

// The position of a run in an epoch of other data after the same number of steps.
StateDict moved_to_step(StateDict loader, const Experiment& e, int64_t step) {
  loader.set("dataset_size", e.loader->dataset().size());
  loader.set("epoch", step / e.steps_per_epoch());
  loader.set("batch", step % e.steps_per_epoch() * e.train.accumulate);
  return loader;
}

}  // namespace

int64_t Experiment::steps_per_epoch() const {
  // Of what the loader is made of, which is made late; it refuses data that makes no batch.
  const int64_t batches = count_batches(data.train->size(), train.batch_size,
                                        train.drop_last ? LastBatch::Drop : LastBatch::Keep);
  return std::max<int64_t>((batches + train.accumulate - 1) / train.accumulate, 1);
}

int64_t Experiment::total_steps() const { return train.length.in_steps(steps_per_epoch()); }

int64_t Experiment::examples_until(int64_t step) const {
  const int64_t batches = loader->batches_per_epoch(),
                in_epoch = train.drop_last ? batches * train.batch_size : data.train->size();
  const int64_t epochs = step / steps_per_epoch(),
                rest = step % steps_per_epoch() * train.accumulate * train.batch_size;
  return epochs * in_epoch + std::min(rest, in_epoch);
}

std::vector<PlannedParameter> Experiment::plan() const {
  if (sparsity == nullptr) return {};
  try {
    return sparsity->plan(total_steps());
  } catch (const ConfigError& error) {
    if (is_trial) return {};
    config.get(config.has("sparsity") ? "sparsity" : "sparsifiers").error(error.what());
  }
}

void Experiment::require_training_fits(int64_t memory) const {
  const auto states = [&](const Parameter& parameter) {
    const auto stored = static_cast<double>(parameter.pattern()->stored_size());
    const auto bytes = static_cast<double>(optimizer->state_bytes(parameter));
    return bytes + (average == nullptr ? 0.0 : stored * sizeof(float));
  };
  lacuna::require_training_fits(*model, layers, states, memory);
}

void Experiment::write_layouts() {
  write_density_limits(config, sparsity->compression().compress_below);
}

// Optimizer, algorithm and loader are where the trainer has brought them. (An algorithm of a user's
// need not count.)
void Experiment::require_same_step(const StateDict& state) const {
  if (!state.contains("trainer/step")) return;
  const int64_t step = state.count("trainer/step");
  const auto refuse = [&](const std::string& what, int64_t found) {
    throw CheckpointError(
        fmt::format("'{}' in the saved state is {}, which does not match 'trainer/step' = {}", what,
                    found, step));
  };
  const auto require = [&](const std::string& name, int64_t expected) {
    if (state.count(name) != expected) refuse(name, state.count(name));
  };
  require("optimizer/step", step);
  require("loader/epoch", step / steps_per_epoch());
  require("loader/batch", step % steps_per_epoch() * train.accumulate);
  if (sparsity != nullptr) state.count("algorithm/step", step);
}

StateDict Experiment::state_dict() const {
  StateDict state;
  state.merge("model", model->state_dict());
  state.merge("optimizer", optimizer->state_dict());
  if (sparsity != nullptr) state.merge("algorithm", sparsity->state_dict());
  if (parametrization != nullptr) state.merge("parametrization", parametrization->state_dict());
  if (average != nullptr) state.merge("ema", average->state_dict());
  if (quantization != nullptr) state.merge("qat", quantization->state_dict());
  state.merge("loader", loader->state());
  state.merge("data", InputFormat::of(data).state_dict());
  state.merge("origins", origins->state_dict());
  return state;
}

std::vector<std::string> Experiment::changes_since(const StateDict& state) const {
  return origins->changes_since(RunOrigins::from_state(state));
}

void Experiment::load_state_dict(const StateDict& state, ChangedOrigins changed) {
  if (!state.below("quantized").empty()) {
    throw CheckpointError(
        "a quantized model can only be trained with qat; train the run that it was made from, or "
        "start a new run with its float32 weights by --init-from (with quantize.algorithm: qat it "
        "trains on the grids of int8)");
  }
  require_same_names(data, state);
  const std::vector<std::string> changes = changes_since(state);
  if (!changes.empty() && changed == ChangedOrigins::Refused) {
    throw CheckpointError(
        fmt::format("changed since this was saved: {}. Restore it, continue with the change by "
                    "--change, or start a new run from these weights (--init-from)",
                    join_foreign(changes, "; ")));
  }
  model->load_state_dict(state.below("model"));
  // Before the optimizer: a phase that is left lets go of states, which must not be the loaded
  // ones.
  if (sparsity != nullptr) sparsity->load_state_dict(state.below("algorithm"));
  optimizer->load_state_dict(state.below("optimizer"));
  if (sparsity != nullptr) sparsity->restore_layouts();
  if (parametrization != nullptr) parametrization->load_state_dict(state.below("parametrization"));
  if (average != nullptr) average->load_state_dict(state.below("ema"), optimizer->steps());
  if (quantization != nullptr) quantization->load_state_dict(state.below("qat"));
  const StateDict position = state.below("loader");
  loader->load_state(changes.empty() ? position
                                     : moved_to_step(position, *this, optimizer->steps()));
  require_same_step(state);
}

int64_t Experiment::numel() const {
  int64_t total = 0;
  for (const ParameterPtr& parameter : model->parameters()) total += parameter->numel();
  return total;
}

int64_t Experiment::nnz() const {
  int64_t total = 0;
  for (const ParameterPtr& parameter : model->parameters()) total += parameter->pattern()->nnz();
  return total;
}

Config saved_config(const Checkpoint& checkpoint, const std::string& path) {
  if (checkpoint.config_yaml.empty()) {
    throw CheckpointError("'" + path +
                          "' holds a model without the configuration of a run, which is needed "
                          "here; use it with model.init_from");
  }
  const Config config = parse_yaml(checkpoint.config_yaml, path);
  rename_earlier_keys(config);
  return config;
}

std::unique_ptr<Sequential> restore_model(const Config& config, const StateDict& state,
                                          const Shape& example_shape) {
  register_builtins();
  auto model = build_model(model_layers(config.at("model")), example_shape);
  model->load_state_dict(model_state(state));
  const Config train = config.get("train");
  if (train.is_map() && train.has("ema"))
    load_average(state.below("ema"), *model, model->buffers());
  const auto seed = train.is_map() ? train.get<int64_t>("seed", 0) : 0;
  sparsify_activations(
      *model, sparsify_from_config(config.get("sparsifiers"), static_cast<uint64_t>(seed)));
  model->eval();
  return model;
}

std::unique_ptr<Sequential> rebuild_model(const Config& config, const StateDict& state,
                                          const Shape& example_shape) {
  auto model = rebuild_float32_model(config, state, example_shape);
  run_in_int8(*model, state.below("quantized"));
  return model;
}

std::unique_ptr<Sequential> rebuild_float32_model(const Config& config, const StateDict& state,
                                                  const Shape& example_shape) {
  auto model = restore_model(config, state, example_shape);
  fold_batch_norm(*model, example_shape);
  return model;
}

}  // namespace lacuna
