#include "lacuna/framework/train/loop/run_state.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace lacuna {
namespace {

void add_sums(StateDict& state, const std::string& prefix, const TrainingSums& sums) {
  state.set(prefix + "_loss", sums.loss.labels);
  state.set(prefix + "_weight", sums.loss.weights.labels);
  state.set(prefix + "_teacher_loss", sums.loss.teacher);
  state.set(prefix + "_rows", sums.loss.weights.rows);
  state.set(prefix + "_correct", sums.correct);
  state.set(prefix + "_examples", sums.examples);
  state.set(prefix + "_answers", sums.answers);
}

// Earlier versions weighed losses by examples, a teacher's among them.
LossSums read_loss(const StateDict& state, const std::string& prefix, int64_t examples) {
  LossSums loss = {.labels = state.number(prefix + "_loss"),
                   .weights = {.labels = static_cast<double>(examples)}};
  if (!state.contains(prefix + "_weight")) return loss;
  loss.weights = {.labels = state.number(prefix + "_weight", 0.0),
                  .rows = state.number(prefix + "_rows", 0.0)};
  loss.teacher = state.number(prefix + "_teacher_loss");
  return loss;
}

TrainingSums read_sums(const StateDict& state, const std::string& prefix, int64_t answers) {
  const int64_t examples = state.count(prefix + "_examples", StateDict::kMostCounted / answers);
  const int64_t most = examples * answers;
  const bool is_counted = state.contains(prefix + "_answers");  // not by earlier versions
  const int64_t asked = is_counted ? state.count(prefix + "_answers", most) : most;
  return {.loss = read_loss(state, prefix, examples),
          .correct = state.count(prefix + "_correct", asked),
          .examples = examples,
          .answers = asked};
}

void add_evaluation(StateDict& state, const std::string& split,
                    const std::optional<Evaluation>& result) {
  if (!result) return;
  state.set(split + "_loss", result->loss);
  state.set(split + "_accuracy", result->accuracy);
  if (!std::isnan(result->top5_accuracy)) {
    state.set(split + "_top5_accuracy", result->top5_accuracy);
  }
  for (const auto& [name, value] : other_results(*result)) state.set(split + "_" + name, value);
  state.set(split + "_examples", result->examples);
}

// Perplexity follows from the loss.
std::optional<Evaluation> read_evaluation(const StateDict& state, const std::string& split) {
  if (!state.contains(split + "_loss")) return std::nullopt;
  const auto accuracy = state.get<double>(split + "_accuracy");
  Evaluation result = {
      .loss = state.number(split + "_loss"),
      .accuracy = std::isnan(accuracy) ? accuracy : state.number(split + "_accuracy", 0.0, 1.0),
      .examples = state.count(split + "_examples")};
  if (state.contains(split + "_top5_accuracy")) {
    result.top5_accuracy = state.number(split + "_top5_accuracy", 0.0, 1.0);
  }
  const auto read = [&](const char* name, double& value) {
    const std::string key = split + "_" + name;
    if (state.contains(key)) value = state.number(key);
  };
  read("r2", result.r2);
  read("mae", result.mae);
  read("rmse", result.rmse);
  for (size_t i = 0; i < kPrecisions.size(); ++i) {
    const std::string key = split + "_" + kPrecisions[i].name;
    if (state.contains(key)) result.precisions[i] = state.number(key, 0.0, 1.0);
  }
  return result;
}

}  // namespace

void RunState::add_step(const TrainingSums& sums, double seconds, int64_t steps_per_epoch) {
  ++step;
  examples += sums.examples;
  train_seconds += std::max(seconds, 0.0);  // some virtual machines' steady clocks run backwards
  window += sums;
  epoch += sums;
  if (step % steps_per_epoch == 0) {
    last_epoch_loss = epoch.mean_loss();
    epoch = {};
  }
}

StateDict RunState::state_dict() const {
  StateDict state;
  state.set("step", step);
  state.set("examples", examples);
  add_sums(state, "epoch", epoch);
  add_sums(state, "window", window);
  state.set("last_epoch_loss", last_epoch_loss);
  stopping.save_to(state);
  state.set("last_evaluated_step", last_evaluated_step);
  if (evaluation_is_due) state.set("evaluation_is_due", int64_t{1});
  if (training_flops) state.set("training_flops", *training_flops);
  add_evaluation(state, "test", test);
  add_evaluation(state, "validation", validation);
  if (best) {
    state.set("best_step", best->step);
    add_evaluation(state, "best_test", best->test);
    add_evaluation(state, "best_validation", best->validation);
  }
  return state;
}

void RunState::load_state_dict(const StateDict& state, int64_t answers) {
  step = state.count("step");
  examples = state.count("examples");
  epoch = read_sums(state, "epoch", answers);
  window = read_sums(state, "window", answers);
  last_epoch_loss = state.number("last_epoch_loss");
  stopping.load_from(state, step);
  last_evaluated_step = state.get<int64_t>("last_evaluated_step");
  if (last_evaluated_step != -1) state.count("last_evaluated_step", step);
  evaluation_is_due = state.contains("evaluation_is_due") && state.count("evaluation_is_due") > 0;
  training_flops.reset();
  if (state.contains("training_flops")) training_flops = state.number("training_flops", 0.0);
  test = read_evaluation(state, "test");
  validation = read_evaluation(state, "validation");
  best.reset();
  if (state.contains("best_step")) {
    best = {.step = state.count("best_step", step),
            .test = read_evaluation(state, "best_test"),
            .validation = read_evaluation(state, "best_validation")};
  }
}

}  // namespace lacuna
