#include "lacuna/framework/train/early_stopping.h"

namespace lacuna {

bool EarlyStopping::judge(double score, int64_t nonzeros) {
  constexpr double kAsMany = 0.99;
  if (best_nonzeros_ &&
      static_cast<double>(nonzeros) < kAsMany * static_cast<double>(*best_nonzeros_)) {
    best_score_.reset();
    score_to_beat_.reset();
    evaluations_without_gain_ = 0;
  }
  if (options_) {
    if (!score_to_beat_ || score > *score_to_beat_ + options_->min_delta) {
      score_to_beat_ = score;
      evaluations_without_gain_ = 0;
    } else if (++evaluations_without_gain_ >= options_->patience) {
      has_stopped_ = true;
    }
  }
  const bool is_best = !best_score_ || score > *best_score_;
  if (is_best) {
    best_score_ = score;
    best_nonzeros_ = nonzeros;
  }
  return is_best;
}

void EarlyStopping::save_to(StateDict& state) const {
  state.set("evaluations_without_gain", evaluations_without_gain_);
  state.set("stopped_early", static_cast<int64_t>(has_stopped_));
  if (best_score_) state.set("best_score", *best_score_);
  if (best_nonzeros_) state.set("best_nonzeros", *best_nonzeros_);
  if (score_to_beat_) state.set("score_to_beat", *score_to_beat_);
}

void EarlyStopping::load_from(const StateDict& state, int64_t most) {
  evaluations_without_gain_ = state.count("evaluations_without_gain", most);
  has_stopped_ = state.count("stopped_early", 1) != 0;
  if (state.contains("best_score")) best_score_ = state.number("best_score");
  constexpr int64_t kMostNonzeros = int64_t{1} << 48;  // more than there is memory for
  if (state.contains("best_nonzeros")) {               // which earlier versions did not save
    best_nonzeros_ = state.count("best_nonzeros", kMostNonzeros);
  }
  if (state.contains("score_to_beat")) score_to_beat_ = state.number("score_to_beat");
}

}  // namespace lacuna
