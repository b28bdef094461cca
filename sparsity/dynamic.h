// DynamicSparsityAlgorithm: changes its masks on the steps of an update schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/config/schedule.h"
#include "lacuna/sparsity/algorithm.h"

namespace lacuna {

/// Base of algorithms with an update schedule. A user's algorithm overrides `type` and
/// `update_mask`, which is called on update steps only, and works on every layout and size.
///
/// Masks start full (dense) unless step 0 is an update step, then as the init method makes them.
class DynamicSparsityAlgorithm : public SparsityAlgorithm {
 public:
  /// *Errors:* ConfigError if keep_alive is combined with a pattern.
  explicit DynamicSparsityAlgorithm(DynamicOptions given,
                                    PatternLifetime lifetime = PatternLifetime::ManySteps);

  void adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source) override;
  /// Counts the step; on an update step, requests each parameter's new mask, with the target of the
  /// new step.
  void update(Optimizer& optimizer) override;
  const UpdateSchedule& update_schedule() const { return options().update; }
  /// Sets another drop fraction from the next update on, in an algorithm that has one.
  void set_drop_fraction(Schedule fraction);
  /// The schedule for a configuration without `update`, in a run (or phase) of this many steps:
  /// every min(100, steps / 100) steps, at least 1, until 75 % of them.
  virtual UpdateSchedule default_updates(int64_t steps) const;

  void forecast(Forecast& forecast) const override;

 protected:
  /// The new mask of a parameter. `mask` is its current one, `sparsity` the target in [0, 1] (in
  /// nonzeros: `weight.target_nnz()`). Positions in both masks keep value and optimizer state; new
  /// ones start at zero.
  virtual MaskSet update_mask(const SparseWeight& weight, const MaskSet& mask, float sparsity) = 0;
  void require_settable(const SparsityTarget&) const override {}
  /// Whether the update at `step` needs the dense gradient of that step's backward. Called before
  /// the forward pass.
  virtual bool wants_dense_gradient(int64_t /*step*/) const { return false; }
  /// Nonzeros that an update leaves of `nnz`, by count only, for the plan. By default the target.
  virtual int64_t nnz_after_update(const MaskSelector& /*selector*/, int64_t /*nnz*/,
                                   int64_t target, float /*drop_fraction*/) const {
    return target;
  }

  /// The dense gradient of this step, numel floats; for a compressed parameter it is computed here.
  /// *Errors:* StateError if it was not requested before the forward pass, or would have more than
  /// 2^31 elements.
  const Tensor& dense_gradient(const SparseWeight& weight) const;
  /// The dense gradient, for changes; it is no longer stored here.
  Tensor take_dense_gradient(const SparseWeight& weight) const;
  /// The dense gradient row by row, as grow_maximum reads it, without the whole array. Valid until
  /// the gradient is zeroed. *Errors:* StateError if it was not requested.
  Scores gradient_rows(const SparseWeight& weight) const;
  /// Fraction to drop at this step, in [0, 1]. *Errors:* ConfigError if the schedule gives no
  /// fraction.
  float drop_fraction() const { return drop_fraction_at(step(), updates()); }
  float drop_fraction_at(int64_t step, int64_t updates) const;
  bool keeps_alive() const { return options().keep_alive; }
  /// Random numbers for a parameter at this step; `purpose` distinguishes uses.
  CounterRng rng(const SparseWeight& weight, const char* purpose) const;

  MaskSet initial_mask(const SparseWeight& weight, MaskSource source) override;
  /// The part of `adopt` after the weights exist: makes the first masks, and collects dense
  /// gradients in the steps that need them. If the route is TapOnly, a `before_step` must give the
  /// optimizer a gradient.
  void begin(Module& module, MaskSource source, GradientRoute route);
  /// Removes the collectors of gradients; the next forward pass that needs them installs them
  /// again.
  void stop_watching();

 private:
  DenseGradient& collected(const SparseWeight& weight) const;
  DenseGradient& whole_gradient(const SparseWeight& weight) const;
  std::vector<int64_t> planned_updates(int64_t steps) const;
  void check_schedules(const std::vector<int64_t>& updates, int64_t steps) const;
  void check_drop_fraction(const std::vector<int64_t>& updates) const;
};

}  // namespace lacuna
