#include "lacuna/framework/train/loop/run_timing.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/loop/clock.hpp"
#include "lacuna/framework/train/loop/training_step.hpp"

namespace lacuna {
namespace {

// Seconds of what a run consists of.
struct RunTimes {
  // A step that changes no masks, by the training FLOPs of an example, which change where the
  // number of nonzeros does. Ascending, one at least.
  struct Step {
    double flops = 0.0;
    double seconds = 0.0;
  };
  std::vector<Step> steps;
  double update = 0.0;      // how much longer a step takes that changes masks
  double evaluation = 0.0;  // of all splits
  double checkpoint = 0.0;
};

constexpr int kLeastSteps = 3, kMostSteps = 500;
constexpr double kLongStep = 10.0;  // seconds: more of them are not waited for

// The first examples of a dataset.
class FirstExamples final : public Dataset {
 public:
  FirstExamples(const Dataset& whole, int64_t size) : whole_(whole), size_(size) {}

  int64_t size() const override { return size_; }
  const Shape& example_shape() const override { return whole_.example_shape(); }
  int64_t vocabulary_size() const override { return whole_.vocabulary_size(); }
  std::shared_ptr<const Tokenizer> tokenizer() const override { return whole_.tokenizer(); }
  std::span<const int32_t> lengths() const override {
    const std::span<const int32_t> all = whole_.lengths();
    return all.first(std::min(all.size(), static_cast<size_t>(size_)));
  }
  int64_t num_classes() const override { return whole_.num_classes(); }
  int64_t num_outputs() const override { return whole_.num_outputs(); }
  TokenLabel token_label() const override { return whole_.token_label(); }
  bool may_prefetch() const override { return whole_.may_prefetch(); }
  Batch gather(std::span<const int64_t> indices) const override { return whole_.gather(indices); }

 private:
  const Dataset& whole_;
  int64_t size_;
};

// The first process decides how many steps all of them time.
bool is_agreed(const Experiment& e, bool own) {
  Communicator* job = e.communicator();
  if (job == nullptr) return own;
  const double vote = own ? 1.0 : 0.0;
  return job->gather(std::span(&vote, 1)).front().front() != 0.0;
}

// The seconds of a step; nothing where its loss ends it.
std::optional<double> run_step(Experiment& e) {
  const StepClock::time_point start = StepClock::now();
  if (!std::isfinite(run_batches(e).mean_loss())) return std::nullopt;
  step_optimizers(e);
  if (e.average) e.average->update(e.optimizer->steps());
  e.optimizer->zero_grad();
  return seconds_since(start);
}

bool has_changed_masks(const Experiment& e) {
  return e.sparsity != nullptr && !e.sparsity->last_update().empty();
}

// Without what some other program's turn has made much longer.
double mean_of(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  const double median = seconds[seconds.size() / 2];
  std::erase_if(seconds, [&](double value) { return value > 3.0 * median; });
  return std::reduce(seconds.begin(), seconds.end()) / static_cast<double>(seconds.size());
}

struct Timed {
  std::vector<double> plain, updates;  // steps that change no masks, and those that do
  bool is_finite = true;
};

Timed time_steps(Experiment& e, double seconds) {
  Timed timed;
  const StepClock::time_point start = StepClock::now();
  for (int step = 0; step < kMostSteps; ++step) {
    const double spent = seconds_since(start);
    if (is_agreed(e, spent > kLongStep || (step >= kLeastSteps && spent >= seconds))) break;
    const std::optional<double> one = run_step(e);
    if (!one) {
      timed.is_finite = false;
      break;
    }
    (has_changed_masks(e) ? timed.updates : timed.plain).push_back(*one);
  }
  return timed;
}

// Sets an algorithm and its parts to a step. Phases keep theirs: their masks are those of others.
bool go_to_step(SparsityAlgorithm& algorithm, int64_t step) {
  if (algorithm.type() == "phases") return false;
  StateDict state = algorithm.state_dict();
  std::vector<std::string> keys;
  for (const auto& [key, value] : state.values()) {
    if (key == "step" || key.ends_with("/step")) keys.push_back(key);
  }
  for (const std::string& key : keys) state.set(key, step);
  algorithm.load_state_dict(state);
  return true;
}

double flops_now(const Experiment& e) {
  return count_flops(e.rows, [](const Parameter& p) { return p.pattern()->nnz(); }).training;
}

// What is planned for a run: on which steps masks change, and what a step costs.
class Forecasts {
 public:
  explicit Forecasts(const Experiment& e) : e_(e), plan_(e.plan()) {
    for (const PlannedParameter& planned : plan_) {
      entries_[planned.parameter].push_back(&planned);
      varies_ |=
          planned.begin > 0 || !planned.changes.empty() || planned.initial_nnz != planned.final_nnz;
      if (planned.update_steps == updates_) continue;
      std::vector<int64_t> all;
      std::ranges::set_union(updates_, planned.update_steps, std::back_inserter(all));
      updates_ = std::move(all);
    }
    std::erase_if(updates_, [&](int64_t step) { return step > e_.total_steps(); });
  }

  const std::vector<int64_t>& updates() const { return updates_; }
  /// Whether numbers of nonzeros do.
  bool varies() const { return varies_; }

  // Training FLOPs of an example in the step that follows `step`.
  double flops_after(int64_t step) const {
    const auto of_it = [&](int64_t at) {
      return static_cast<double>(std::clamp(at, step, step + 1) - step);
    };
    const auto nonzeros = [&](const Parameter& p) {
      const auto found = entries_.find(p.name());
      return found == entries_.end() ? static_cast<double>(p.pattern()->nnz())
                                     : mean_nnz(found->second, step + 1, of_it);
    };
    return count_flops(e_.rows, nonzeros).training;
  }

  // Some of the steps on which masks change. Where numbers of nonzeros do too, those with the
  // fewest and the most behind them, and two between these.
  std::vector<int64_t> timed_updates() const {
    constexpr size_t kLooked = 24, kTimed = 4;
    std::vector<int64_t> looked;
    for (size_t i = 0; i < std::min(kLooked, updates_.size()); ++i) {
      looked.push_back(updates_[i * updates_.size() / std::min(kLooked, updates_.size())]);
    }
    if (!updates_.empty()) looked.back() = updates_.back();
    if (!varies_) {
      looked.resize(std::min<size_t>(looked.size(), 2));
      return looked;
    }
    std::vector<std::pair<double, int64_t>> by_flops;
    for (const int64_t step : looked) by_flops.emplace_back(flops_after(step), step);
    std::ranges::sort(by_flops);
    std::vector<int64_t> timed;
    for (size_t i = 0; i < std::min(kTimed, by_flops.size()); ++i) {
      const size_t parts = std::max<size_t>(std::min(kTimed, by_flops.size()) - 1, 1);
      timed.push_back(by_flops[i * (by_flops.size() - 1) / parts].second);
    }
    std::ranges::sort(timed);  // gradual pruning goes one way
    timed.erase(std::unique(timed.begin(), timed.end()), timed.end());
    return timed;
  }

 private:
  const Experiment& e_;
  std::vector<PlannedParameter> plan_;
  std::map<std::string, std::vector<const PlannedParameter*>> entries_;
  std::vector<int64_t> updates_;
  bool varies_ = false;
};

// By the line through the two nearest.
double seconds_at(const std::vector<RunTimes::Step>& steps, double flops) {
  const auto above = std::ranges::lower_bound(steps, flops, {}, &RunTimes::Step::flops);
  if (above == steps.begin()) return steps.front().seconds;
  if (above == steps.end()) return steps.back().seconds;
  const RunTimes::Step& below = *std::prev(above);
  return std::lerp(below.seconds, above->seconds,
                   (flops - below.flops) / (above->flops - below.flops));
}

void add_step(RunTimes& times, double flops, double seconds) {
  const auto at = std::ranges::lower_bound(times.steps, flops, {}, &RunTimes::Step::flops);
  if (at != times.steps.end() && at->flops == flops) return;
  times.steps.insert(at, {flops, seconds});
}

// Times steps on which masks change, and those that follow them.
bool time_updates(Experiment& e, const Forecasts& forecasts, double seconds, RunTimes& times) {
  const std::vector<int64_t> timed = forecasts.timed_updates();
  std::vector<double> longer;
  for (const int64_t step : timed) {
    const double before = seconds_at(times.steps, flops_now(e));
    if (!go_to_step(*e.sparsity, step - 1)) return true;
    const std::optional<double> update = run_step(e);
    if (!update) return false;
    if (has_changed_masks(e)) longer.push_back(*update - before);
    if (!forecasts.varies()) continue;
    if (!go_to_step(*e.sparsity, e.total_steps())) return true;  // behind all updates
    const Timed after = time_steps(e, seconds / static_cast<double>(timed.size()));
    if (!after.is_finite) return false;
    if (!after.plain.empty()) add_step(times, flops_now(e), mean_of(after.plain));
  }
  if (!longer.empty()) times.update = std::max(0.0, mean_of(longer));
  return true;
}

double time_evaluation(Experiment& e, double seconds) {
  const auto averaged = e.average ? e.average->show() : nullptr;
  double total = 0.0;
  for (const auto& split : {e.data.validation, e.data.test}) {
    if (split == nullptr) continue;
    double each = 0.0, spent = 0.0;
    for (int64_t size = std::min(split->size(), e.train.eval_batch_size);; size *= 4) {
      size = std::min(size, split->size());
      const FirstExamples some(*split, size);
      const StepClock::time_point start = StepClock::now();
      evaluate(*e.model, e.loss, some, e.train.eval_batch_size, nullptr, e.communicator());
      const double took = seconds_since(start);
      each = took / static_cast<double>(size);
      spent += took;
      if (is_agreed(e, size == split->size() || spent + 4.0 * took > seconds)) break;
    }
    total += each * static_cast<double>(split->size());
  }
  return total;
}

double time_checkpoint(const Experiment& e) {
  if (!e.is_first()) return 0.0;
  namespace fs = std::filesystem;
  // One name for all processes: what a killed one has left is replaced by the next.
  const std::string path =
      (fs::temp_directory_path() / fmt::format("lacuna-timing-{}.h5", ::getuid())).string();
  const StepClock::time_point start = StepClock::now();
  double seconds = 0.0;
  try {
    write_checkpoint(path, {.state = e.state_dict(), .config_yaml = e.config.to_yaml()});
    seconds = seconds_since(start);
  } catch (const StateError&) {  // no room there: it is not counted
  }
  std::error_code ignored;
  fs::remove(path, ignored);
  return seconds;
}

// Values, gradients and the optimizer's states, as they are in the beginning.
bool may_not_fit(const Experiment& e) {
  const double bytes = 4.0 * sizeof(float) * static_cast<double>(e.nnz());
  return 2.0 * bytes > static_cast<double>(available_memory());
}

// So that arrays are there, and what is measured once has been.
bool warm_up(Experiment& e) {
  e.model->train();
  for (int step = 0; step < 2; ++step) {
    const std::optional<double> seconds = run_step(e);
    if (!seconds) return false;
    if (is_agreed(e, *seconds > kLongStep)) break;
  }
  return true;
}

RunTime run_time(const Experiment& e, const Forecasts& forecasts, const RunTimes& times) {
  const int64_t steps = e.total_steps();
  const int samples = forecasts.varies() ? 32 : 1;
  double plain = 0.0;
  for (int i = 0; i < samples; ++i) {
    const double part = (i + 0.5) / samples;
    const auto step = static_cast<int64_t>(part * static_cast<double>(steps));
    plain += seconds_at(times.steps, forecasts.flops_after(step)) / samples;
  }
  // Once a period, and at the end.
  const auto often = [&](const Period& period) {
    const int64_t every = period.in_steps(e.steps_per_epoch());
    return static_cast<double>(steps / every + (steps % every == 0 ? 0 : 1));
  };
  const double updates = static_cast<double>(forecasts.updates().size());
  return {.steps = steps,
          .steps_per_epoch = e.steps_per_epoch(),
          .step = plain + times.update * updates / static_cast<double>(std::max<int64_t>(steps, 1)),
          .evaluations = times.evaluation * often(e.train.eval_every),
          .checkpoints = times.checkpoint * (1.0 + often(e.train.checkpoint.every))};
}

}  // namespace

std::optional<double> measure_step(Experiment& e, double seconds) {
  if (is_agreed(e, may_not_fit(e)) || !warm_up(e)) return std::nullopt;
  Timed timed = time_steps(e, seconds);
  std::vector<double>& all = timed.plain;
  all.insert(all.end(), timed.updates.begin(), timed.updates.end());
  if (!timed.is_finite || all.empty()) return std::nullopt;
  return mean_of(all);
}

std::optional<RunTime> measure_run(Experiment& e, double seconds) {
  const Forecasts forecasts(e);  // of masks as they are in the beginning
  if (is_agreed(e, may_not_fit(e)) || !warm_up(e)) return std::nullopt;
  RunTimes times;
  Timed timed = time_steps(e, seconds / 2.0);
  if (timed.is_finite && timed.plain.empty() && go_to_step(*e.sparsity, e.total_steps())) {
    const Timed behind = time_steps(e, seconds / 2.0);  // each step changes masks until the last
    timed.is_finite = behind.is_finite;
    timed.plain = behind.plain;
  }
  if (timed.plain.empty()) std::swap(timed.plain, timed.updates);
  if (!timed.is_finite || timed.plain.empty()) return std::nullopt;
  add_step(times, flops_now(e), mean_of(timed.plain));
  if (!timed.updates.empty()) {
    times.update = std::max(0.0, mean_of(timed.updates) - times.steps.front().seconds);
  }
  const bool has_more = forecasts.varies() || timed.updates.empty();
  if (has_more && !forecasts.updates().empty() &&
      !time_updates(e, forecasts, seconds / 2.0, times)) {
    return std::nullopt;
  }
  times.evaluation = time_evaluation(e, seconds / 2.0);
  times.checkpoint = time_checkpoint(e);
  return run_time(e, forecasts, times);
}

}  // namespace lacuna
