// EarlyStopping: which evaluation is the best so far, and when training has stopped getting better.
#pragma once

#include <cstdint>
#include <optional>

#include "lacuna/framework/core/state_dict.h"
#include "lacuna/framework/train/train_options.h"

namespace lacuna {

/// Judges evaluations by a score of which more is better: a validation accuracy, or −loss.
class EarlyStopping {
 public:
  /// Without options it never stops, and still knows the best.
  explicit EarlyStopping(std::optional<EarlyStoppingOptions> options = std::nullopt)
      : options_(options) {}

  /// Takes the next score, of a model with so many nonzeros. Returns whether it is the best so far,
  /// by however little; only what beats the last gain by more than `min_delta` puts the stop off.
  /// A model that has lost more than 1 % of the best one's nonzeros is judged anew: what has been
  /// pruned is not compared with what it was before.
  bool judge(double score, int64_t nonzeros);
  /// Whether `patience` scores in a row were no gain. Stays so.
  bool has_stopped() const { return has_stopped_; }

  /// Adds what it remembers to a state: "best_score", "best_nonzeros", "score_to_beat" (once there
  /// are scores),
  /// "evaluations_without_gain", "stopped_early".
  void save_to(StateDict& state) const;
  /// *Errors:* CheckpointError; also when there were more than `most` evaluations without a gain.
  void load_from(const StateDict& state, int64_t most);

 private:
  std::optional<EarlyStoppingOptions> options_;
  std::optional<double> best_score_;
  std::optional<double> score_to_beat_;
  std::optional<int64_t> best_nonzeros_;
  int64_t evaluations_without_gain_ = 0;
  bool has_stopped_ = false;
};

}  // namespace lacuna
