#include "lacuna/framework/program/output/time_table.hpp"

#include <fmt/core.h>

#include "lacuna/framework/io/progress.h"

namespace lacuna {
namespace {

RunTime of_steps(const RunTime& time, double step) {
  RunTime other = time;
  other.step = step;
  return other;
}

std::string in_words(const RunTime& time) {
  return fmt::format("{} per step, {} per epoch, {} of training", time_in_words(time.step),
                     time_in_words(time.epoch()), time_in_words(time.training()));
}

}  // namespace

std::string time_in_words(double seconds) {
  if (seconds < 1.0) return fmt::format("{:.3g} ms", 1e3 * seconds);
  return seconds < 60.0 ? fmt::format("{:.3g} s", seconds) : format_duration(seconds);
}

std::string speedup_in_words(double speedup, double less_arithmetic) {
  std::string text = speedup >= 1.0 ? fmt::format("{:.3g} times faster than dense", speedup)
                                    : fmt::format("{:.3g} times slower than dense", 1.0 / speedup);
  if (less_arithmetic > 1.0) text += fmt::format("; {:.3g} times less arithmetic", less_arithmetic);
  return text;
}

std::vector<std::string> time_lines(const RunTime& time, const std::optional<DenseStep>& dense,
                                    double less_arithmetic) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("time: {} (measured); with evaluations and checkpoints {}",
                              in_words(time), time_in_words(time.total())));
  if (!dense) return lines;
  lines.push_back(fmt::format("dense: {} ({})", in_words(of_steps(time, dense->seconds)),
                              dense->is_measured ? "measured" : "predicted: not run here"));
  lines.push_back(speedup_in_words(dense->seconds / time.step, less_arithmetic));
  return lines;
}

Config to_config(const RunTime& time, const std::optional<DenseStep>& dense,
                 double less_arithmetic) {
  Config entry = Config::map({{"step_seconds", time.step},
                              {"epoch_seconds", time.epoch()},
                              {"training_seconds", time.training()},
                              {"evaluation_seconds", time.evaluations},
                              {"checkpoint_seconds", time.checkpoints},
                              {"run_seconds", time.total()}});
  if (!dense) return entry;
  const RunTime whole = of_steps(time, dense->seconds);
  entry.set("dense_step_seconds", whole.step);
  entry.set("dense_epoch_seconds", whole.epoch());
  entry.set("dense_training_seconds", whole.training());
  entry.set("dense_step_is_measured", dense->is_measured);
  entry.set("speedup", dense->seconds / time.step);
  entry.set("less_arithmetic", less_arithmetic);
  return entry;
}

}  // namespace lacuna
