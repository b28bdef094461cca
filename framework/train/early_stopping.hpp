// EarlyStopping: which evaluation is the best so far, and when training has stopped getting better.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/train/train_options.h"

namespace lacuna {

/// Judges evaluations by a score of which more is better: a validation accuracy, or −loss. Of equal
/// scores the lower loss is better: a small split has the same accuracy many times while the loss
/// still falls.
class EarlyStopping {
 public:
  /// Without options it never stops, and still knows the best. `first_counted`: scores of earlier
  /// steps without a gain are not counted, because the model is still to be pruned or quantized.
  /// `run_steps`: the length of the run for which that was planned.
  explicit EarlyStopping(std::optional<EarlyStoppingOptions> options = std::nullopt,
                         int64_t first_counted = 0, int64_t run_steps = 0)
      : options_(options), first_counted_(first_counted), run_steps_(run_steps) {}

  /// Receives the score after a step, and the number of nonzeros of the model. Returns whether it
  /// is the best so far, by however little; only what beats the last gain by more than `min_delta`,
  /// or has its score and a loss that is lower by more than that, puts the stop off. Without a loss
  /// (NaN) an equal score is no better one. A model that has lost more than 1 % of the best
  /// one's nonzeros is judged again: what has been pruned is not compared with its earlier
  /// state. Nor is a quantized model compared with one that was not.
  bool judge(int64_t step, double score, int64_t nonzeros, double loss = kNoLoss,
             bool is_quantized = false);
  /// Whether `patience` scores in a row were no gain. Stays so.
  bool has_stopped() const { return has_stopped_; }

  /// Adds what it remembers to a state: "best_score", "best_nonzeros", "score_to_beat" (once there
  /// are scores), "best_loss", "loss_to_beat" (with losses), "evaluations_without_gain",
  /// "stopped_early", "first_counted", "counted_for" (`run_steps`), "best_is_quantized" (if so).
  void save_to(StateDict& state) const;
  /// What had stopped has stopped still where the options' patience is at an end: a run whose
  /// patience has grown since, or that has no early stopping any more, goes on. The first counted
  /// step is the saved one, unless the run had another length. *Errors:*
  /// CheckpointError; also when there were more than `most` evaluations without a gain.
  void load_from(const StateDict& state, int64_t most);

 private:
  static constexpr double kNoLoss = std::numeric_limits<double>::quiet_NaN();

  std::optional<EarlyStoppingOptions> options_;
  int64_t first_counted_ = 0, run_steps_ = 0;
  std::optional<double> best_score_;
  std::optional<double> score_to_beat_;
  double best_loss_ = kNoLoss, loss_to_beat_ = kNoLoss;  // of these two
  std::optional<int64_t> best_nonzeros_;
  bool best_is_quantized_ = false;
  int64_t evaluations_without_gain_ = 0;
  bool has_stopped_ = false;
};

}  // namespace lacuna
