#include "lacuna/framework/train/loop/run_length.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/io/progress.h"
#include "lacuna/framework/train/loop/run_timing.hpp"
#include "lacuna/framework/train/parts/experiment_on_data.hpp"

namespace lacuna {
namespace {

// The length that is tried first: long enough for all that begins somewhere in a run, and not too
// long to be planned.
constexpr int64_t kFirstLength = 100'000;
constexpr double kMostSeconds = 1e9;

// The length of the first process, in all.
int64_t agreed(int64_t steps, Communicator* job) {
  return job == nullptr ? steps : std::stoll(job->from_first(std::to_string(steps)));
}

// One step at least.
int64_t steps_of(const RunTime& time, double seconds, Communicator* job) {
  const double each = time.total() / static_cast<double>(time.steps);
  const double steps = std::clamp(seconds / each, 1.0, static_cast<double>(kMaxSteps));
  return agreed(static_cast<int64_t>(steps), job);
}

void set_length(Config& config, int64_t steps) {
  Config train = config.get("train");
  train.erase("seconds");
  train.set("steps", steps);
}

std::string milliseconds(double seconds) { return fmt::format("{:.3g} ms", 1e3 * seconds); }

}  // namespace

bool has_seconds(const Config& config) {
  const Config train = config.is_map() ? config.get("train") : Config();
  if (!train.is_map() || !train.has("seconds")) return false;
  const Config seconds = train.get("seconds");
  for (const char* other : {"epochs", "steps"}) {
    if (train.has(other)) {
      seconds.error(fmt::format("`seconds` and `{}` are both given; give one of them", other));
    }
  }
  if (!seconds.is_number()) seconds.fail("a number of seconds above 0");
  const double value = seconds.as<double>();
  if (!(value > 0.0 && value <= kMostSeconds)) seconds.fail("a number of seconds above 0");
  return true;
}

// Twice: masks of another length of run may change at other steps.
MeasuredLength build_for_seconds(Config& config, const std::shared_ptr<Communicator>& job) {
  const double seconds = config.get("train").get("seconds").as<double>();
  const double budget = std::clamp(seconds / 20.0, 1.0, 10.0);
  std::optional<DataSplits> data;
  Config data_section;
  int64_t steps = kFirstLength;
  const auto build = [&](Config of, Start start) {
    if (!data) return build_experiment(of, start, job);
    of.set("data", data_section.clone());
    try {
      return build_experiment_on(*data, of, start, job);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{} (in train.seconds = {} there is time for {})", error.what(),
                                    seconds, plural(steps, "step")));
    }
  };
  RunTime time;
  for (const double share : {0.3, 0.7}) {
    Config tried = config.clone();
    set_length(tried, steps);
    const std::unique_ptr<Experiment> trial = build(tried, Start::Trial);
    const std::optional<RunTime> measured = measure_run(*trial, share * budget);
    if (!measured) {
      config.get("train").get("seconds").error(
          "the time of a step cannot be measured: a loss is not finite, or training may not fit "
          "into memory; give train.steps or train.epochs");
    }
    data = trial->data;
    data_section = trial->config.get("data").clone();
    time = *measured;
    steps = steps_of(time, seconds, job.get());
  }
  set_length(config, steps);
  const double wholly = time.total() / static_cast<double>(time.steps);
  return {.experiment = build(config, Start::Fresh),
          .note = fmt::format(
              "length    {} {} about {:.4g} s: {} each, {} with evaluations and checkpoints "
              "(train.seconds)",
              grouped(steps), steps == 1 ? "step takes" : "steps take",
              wholly * static_cast<double>(steps), milliseconds(time.step), milliseconds(wholly))};
}

}  // namespace lacuna
