#include "lacuna/framework/train/runs/best_checkpoint.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/records/json_text.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// Losses of one evaluation are equal but for a rounding of text.
bool is_same(double a, double b) {
  return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b));
}

std::optional<double> loss_in(const StateDict& state, const char* key) {
  const std::string name = std::string("trainer/") + key;
  if (!state.contains(name)) return std::nullopt;
  return state.number(name);
}

std::string seed_of(const Checkpoint& checkpoint) {
  if (checkpoint.config_yaml.empty()) return "";
  const Config train = parse_yaml(checkpoint.config_yaml, "config").get("train");
  return train.is_map() ? train.get("seed").text() : "";
}

// The validation loss that metrics.jsonl has of a step; the last one counts.
std::optional<double> recorded_loss(const std::string& path, int64_t step) {
  std::ifstream stream(path, std::ios::binary);
  std::optional<double> loss;
  for (std::string line; std::getline(stream, line);) {
    if (line.find("\"validation\"") == std::string::npos) continue;
    const auto event = parse_json(line);
    if (!event || !event->is_map() || event->get("split").text() != "validation") continue;
    const Config at = event->get("step"), value = event->get("loss");
    if (at.is_number() && value.is_number() && at.as<double>() == static_cast<double>(step)) {
      loss = value.as<double>();
    }
  }
  return loss;
}

// Of a step that no checkpoint has come to yet.
std::string misfit_with_metrics(const Checkpoint& best, const RunFolder& folder) {
  const auto own = loss_in(best.state, "validation_loss");
  if (!own) return "";
  const auto recorded = recorded_loss(folder.metrics_path(), best.step);
  if (recorded && is_same(*recorded, *own)) return "";
  return fmt::format("is of step {}, and metrics.jsonl has {} there", best.step,
                     recorded ? "another validation loss" : "no evaluation");
}

// Damage that the file shows while it is read counts as its opening's does.
std::optional<Checkpoint> read_good(const std::string& path, std::string* damage) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    return read_checkpoint(path);
  } catch (const CheckpointError& damaged) {
    *damage = damaged.what();
    return std::nullopt;
  }
}

// Of the same step as a checkpoint that was saved before the step's evaluation.
bool is_of_due_evaluation(const Checkpoint& best, const Checkpoint& recorded) {
  return best.step == recorded.step && recorded.state.contains("trainer/evaluation_is_due");
}

}  // namespace

std::string misfit_of_best(const Checkpoint& best, const Checkpoint& recorded) {
  if (seed_of(best) != seed_of(recorded)) return "is of another run, with another seed";
  if (best.step > recorded.step) {
    return fmt::format("is of step {}, and the run has come to step {}", best.step, recorded.step);
  }
  if (is_of_due_evaluation(best, recorded)) return "";
  const StateDict& state = recorded.state;
  if (!state.contains("trainer/best_step")) {
    const bool is_judged = !state.contains("trainer/last_evaluated_step") ||
                           state.get<int64_t>("trainer/last_evaluated_step") >= 0;
    return is_judged ? "" : "is older than the run's first evaluation";
  }
  if (const int64_t step = state.count("trainer/best_step"); step != best.step) {
    return fmt::format("is of step {}, and the run's best of step {}", best.step, step);
  }
  const auto own = loss_in(best.state, "validation_loss"),
             known = loss_in(state, "best_validation_loss");
  if (!own || !known || is_same(*own, *known)) return "";
  return fmt::format("has a validation loss of {:.6g}, and the run's best {:.6g}", *own, *known);
}

std::optional<CheckpointFile> fitting_best(const RunFolder& folder) {
  std::string damage;
  const auto best = read_good(folder.best_path(), &damage);
  if (!best) {
    if (!damage.empty()) log_warning(damage + "; using the last checkpoint");
    return std::nullopt;
  }
  const bool is_alone = folder.checkpoint_steps().empty();
  std::optional<CheckpointFile> newest;
  if (!is_alone) {
    try {
      newest = folder.newest_good_checkpoint();
    } catch (const CheckpointError& none) {
      log_warning(none.what());
    }
  }
  std::string misfit;
  std::error_code error;
  if (newest) {
    const Checkpoint last = newest->read();
    misfit = misfit_of_best(*best, last);
    const bool is_later = seed_of(*best) == seed_of(last) &&
                          (best->step > last.step || is_of_due_evaluation(*best, last));
    if (is_later) misfit = misfit_with_metrics(*best, folder);
  } else if (fs::exists(folder.metrics_path(), error)) {
    misfit = misfit_with_metrics(*best, folder);
  }
  if (misfit.empty()) return CheckpointFile(folder.best_path());
  log_warning(fmt::format("'{}' {}; using the last checkpoint{}", folder.best_path(), misfit,
                          newest ? " '" + newest->path() + "'" : ""));
  return std::nullopt;
}

void remove_remade_best(const RunFolder& folder, const Checkpoint& best) {
  const std::string path = folder.best_path() + ".stale";
  std::string damage;
  const auto stale = read_good(path, &damage);
  if (!stale || stale->step != best.step || seed_of(*stale) != seed_of(best)) return;
  if (loss_in(stale->state, "validation_loss") != loss_in(best.state, "validation_loss")) return;
  std::error_code ignored;  // it stays, and is nobody's best
  fs::remove(path, ignored);
}

void set_best_aside(const RunFolder& folder, const std::string& why) {
  const std::string path = folder.best_path();
  std::error_code error;
  if (!fs::exists(path, error)) return;
  fs::rename(path, path + ".stale", error);
  if (error) throw StateError("cannot set '" + path + "' aside: " + error.message());
  log_warning(fmt::format("'{}' {}; it is set aside as best.h5.stale", path, why));
}

void set_stale_best_aside(const RunFolder& folder, const Checkpoint* from) {
  std::string damage;
  const auto best = read_good(folder.best_path(), &damage);
  if (!best) return;
  const std::string misfit =
      from == nullptr ? "is older than the run, which starts again" : misfit_of_best(*best, *from);
  if (!misfit.empty()) set_best_aside(folder, misfit);
}

}  // namespace lacuna
