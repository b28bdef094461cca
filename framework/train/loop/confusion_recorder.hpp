// ConfusionRecorder: which classes a run's last evaluation took for which.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lacuna/framework/train/confusion_matrix.hpp"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// Counts while a split is evaluated, where examples have one label each and there are at most 100
/// classes, and writes confusion.json (docs/reference/run-folder.md). Of several splits the one
/// whose results are the run's counts: test, else validation.
class ConfusionRecorder {
 public:
  static constexpr int64_t kMostClasses = 100;

  /// `experiment` must outlive it.
  explicit ConfusionRecorder(const Experiment& experiment) : experiment_(experiment) {}

  /// For `evaluate`; begins to count again. Null for a split that does not count. *Lifetime:* this
  /// object's.
  BatchWatcher watcher(const std::string& split, int64_t step);
  /// Writes what was counted at this step into a run's folder; `folder` is empty where the file
  /// stays as it is. Where nothing was counted, as the process that evaluated was killed, evaluates
  /// the split again, which a job does not. Collective. *Errors:* StateError.
  void write(int64_t step, const std::string& folder);

 private:
  bool is_counted(const std::string& split) const;

  const Experiment& experiment_;
  std::optional<ConfusionMatrix> matrix_;
  std::string split_;
  int64_t step_ = -1;
};

}  // namespace lacuna
