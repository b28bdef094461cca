// What of an experiment is saved, and how it is loaded again.
#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/train/data/vocabulary_checks.h"
#include "lacuna/framework/train/experiment.h"
#include "lacuna/framework/train/input_format.h"

namespace lacuna {

namespace {

// The same ids and labels must stand for the same tokens and classes.
void require_same_names(const DataSplits& data, const StateDict& state) {
  if (!state.contains("data/example_shape")) return;
  const InputFormat saved = InputFormat::from_state(state.below("data"));
  if (!has_same_vocabulary(*data.train, saved.tokenizer)) {
    throw CheckpointError(
        "the data has another vocabulary than the run was trained with; a run continues on the "
        "same data only");
  }
  if (!saved.class_names.empty() && saved.class_names != data.train->class_names()) {
    throw CheckpointError(
        "the data's classes have other names than those that the run was trained with; a run "
        "continues on the same data only");
  }
}

// As many examples as before say nothing of what they are.
void require_same_tokens(const std::optional<int64_t>& fingerprint, const StateDict& state) {
  if (!fingerprint || !state.contains("data/fingerprint")) return;  // not by earlier versions
  if (state.get<int64_t>("data/fingerprint") == *fingerprint) return;
  throw CheckpointError(
      "the training data has other tokens or labels than those that the run was trained on; a run "
      "continues on the same data only (a new run can begin with its weights: --init-from)");
}

}  // namespace

// Optimizer, algorithm and loader are where the trainer has brought them. (An algorithm of a user's
// need not count.)
void Experiment::require_same_step(const StateDict& state) const {
  if (!state.contains("trainer/step")) return;
  const int64_t step = state.count("trainer/step");
  const auto refuse = [&](const std::string& what, int64_t found) {
    throw CheckpointError(fmt::format(
        "'{}' in the saved state is {}, which is not where a run stands after 'trainer/step' = {}",
        what, found, step));
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
  if (average != nullptr) state.merge("ema", average->state_dict());
  state.merge("loader", loader->state());
  state.merge("data", InputFormat::of(data).state_dict());
  if (fingerprint) state.set("data/fingerprint", *fingerprint);
  return state;
}

void Experiment::load_state_dict(const StateDict& state) {
  require_same_names(data, state);
  require_same_tokens(fingerprint, state);
  model->load_state_dict(state.below("model"));
  // Before the optimizer: a phase that is left lets go of states, which must not be the loaded
  // ones.
  if (sparsity != nullptr) sparsity->load_state_dict(state.below("algorithm"));
  optimizer->load_state_dict(state.below("optimizer"));
  if (sparsity != nullptr) sparsity->restore_layouts();
  if (average != nullptr) average->load_state_dict(state.below("ema"), optimizer->steps());
  loader->load_state(state.below("loader"));
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

}  // namespace lacuna
