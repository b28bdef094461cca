#include "lacuna/framework/train/run_state.h"

#include <cmath>
#include <string>

namespace lacuna {
namespace {

void add_sums(StateDict& state, const std::string& prefix, const TrainingSums& sums) {
  state.set(prefix + "_loss", sums.loss);
  state.set(prefix + "_correct", sums.correct);
  state.set(prefix + "_examples", sums.examples);
}

TrainingSums read_sums(const StateDict& state, const std::string& prefix, int64_t answers) {
  const int64_t examples = state.count(prefix + "_examples", StateDict::kMostCounted / answers);
  return {.loss = state.number(prefix + "_loss"),
          .correct = state.count(prefix + "_correct", examples * answers),
          .examples = examples};
}

}  // namespace

void RunState::add_step(const TrainingSums& sums, double seconds, int64_t steps_per_epoch) {
  ++step;
  examples += sums.examples;
  train_seconds += seconds;
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
  if (training_flops) state.set("training_flops", *training_flops);
  if (test) {
    state.set("test_loss", test->loss);
    state.set("test_accuracy", test->accuracy);
    if (!std::isnan(test->top5_accuracy)) state.set("test_top5_accuracy", test->top5_accuracy);
    state.set("test_examples", test->examples);
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
  training_flops.reset();
  if (state.contains("training_flops")) training_flops = state.number("training_flops", 0.0);
  if (state.contains("test_loss")) {
    const auto accuracy = state.get<double>("test_accuracy");
    test = {.loss = state.number("test_loss"),
            .accuracy = std::isnan(accuracy) ? accuracy : state.number("test_accuracy", 0.0, 1.0),
            .examples = state.count("test_examples")};
    if (state.contains("test_top5_accuracy")) {
      test->top5_accuracy = state.number("test_top5_accuracy", 0.0, 1.0);
    }
  }
}

}  // namespace lacuna
