#include "lacuna/framework/train/early_stopping.hpp"

#include <cmath>

namespace lacuna {

bool EarlyStopping::judge(int64_t step, double score, int64_t nonzeros, double loss,
                          bool is_quantized) {
  constexpr double kAsMany = 0.99;
  const bool is_pruned = best_nonzeros_ && static_cast<double>(nonzeros) <
                                               kAsMany * static_cast<double>(*best_nonzeros_);
  if (is_pruned || (is_quantized && !best_is_quantized_)) {
    best_score_.reset();
    score_to_beat_.reset();
    evaluations_without_gain_ = 0;
  }
  if (options_) {
    // A loss that is not known is no lower one: comparisons with NaN are false.
    const double delta = options_->min_delta;
    const bool is_gain = !score_to_beat_ || score > *score_to_beat_ + delta ||
                         (score == *score_to_beat_ && loss < loss_to_beat_ - delta);
    if (is_gain) {
      score_to_beat_ = score;
      loss_to_beat_ = loss;
      evaluations_without_gain_ = 0;
    } else if (step >= first_counted_ && ++evaluations_without_gain_ >= options_->patience) {
      has_stopped_ = true;
    }
  }
  const bool is_best =
      !best_score_ || score > *best_score_ || (score == *best_score_ && loss < best_loss_);
  if (is_best) {
    best_score_ = score;
    best_loss_ = loss;
    best_nonzeros_ = nonzeros;
    best_is_quantized_ = is_quantized;
  }
  return is_best;
}

void EarlyStopping::save_to(StateDict& state) const {
  state.set("evaluations_without_gain", evaluations_without_gain_);
  state.set("stopped_early", static_cast<int64_t>(has_stopped_));
  state.set("first_counted", first_counted_);
  state.set("counted_for", run_steps_);
  if (best_score_) state.set("best_score", *best_score_);
  if (best_nonzeros_) state.set("best_nonzeros", *best_nonzeros_);
  if (best_is_quantized_) state.set("best_is_quantized", int64_t{1});
  if (score_to_beat_) state.set("score_to_beat", *score_to_beat_);
  if (!std::isnan(best_loss_)) state.set("best_loss", best_loss_);
  if (!std::isnan(loss_to_beat_)) state.set("loss_to_beat", loss_to_beat_);
}

void EarlyStopping::load_from(const StateDict& state, int64_t most) {
  evaluations_without_gain_ = state.count("evaluations_without_gain", most);
  has_stopped_ = state.count("stopped_early", 1) != 0 && options_ &&
                 evaluations_without_gain_ >= options_->patience;
  // A run that goes on keeps its plan, which may have been made of other masks than the present
  // ones (those of init_from). A run of another length has a new plan; so has one whose checkpoint
  // was written by a program that did not train it. Without the first key, of an earlier version,
  // all evaluations count.
  const bool has_length = state.contains("counted_for");
  const int64_t length = has_length ? state.count("counted_for", kMaxSteps) : 0;
  if (!state.contains("first_counted")) {
    first_counted_ = 0;
  } else {
    const int64_t saved = state.count("first_counted", has_length ? length : kMaxSteps);
    if (length == run_steps_) first_counted_ = saved;
  }
  if (state.contains("best_score")) best_score_ = state.number("best_score");
  constexpr int64_t kMostNonzeros = int64_t{1} << 48;  // more than there is memory for
  if (state.contains("best_nonzeros")) {               // which earlier versions did not save
    best_nonzeros_ = state.count("best_nonzeros", kMostNonzeros);
  }
  best_is_quantized_ =
      state.contains("best_is_quantized") && state.count("best_is_quantized", 1) > 0;
  if (state.contains("score_to_beat")) score_to_beat_ = state.number("score_to_beat");
  // Nor these: an equal score is then no better one, as it was for them.
  if (state.contains("best_loss")) best_loss_ = state.number("best_loss");
  if (state.contains("loss_to_beat")) loss_to_beat_ = state.number("loss_to_beat");
  if (options_) return;
  // If early stopping was removed, nothing is counted, as if it had never been set.
  evaluations_without_gain_ = 0;
  score_to_beat_.reset();
  loss_to_beat_ = kNoLoss;
}

}  // namespace lacuna
