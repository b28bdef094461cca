// DynamicSparsityAlgorithm: changes its masks on the steps of an update schedule.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "lacuna/framework/core/schedule.h"
#include "lacuna/sparsity/algorithm.h"
#include "lacuna/sparsity/dense_gradient.h"
#include "lacuna/sparsity/selection.h"

namespace lacuna {

/// Options of the algorithms whose masks change.
struct DynamicOptions {
  SparsityTarget sparsity = {};
  InitMethod init_method = {};
  ParameterFilter param_filter = {};
  ScoreGroups groups = {};
  Structure structure = {};
  Distribution distribution = {};
  LayoutOption layout = {};
  uint64_t seed = 0;
  /// When masks change; every step by default.
  UpdateSchedule update = {};
  /// Fraction of the nonzeros dropped at an update, in [0, 1]; 0.3 where an algorithm drops and it
  /// is absent.
  std::optional<Schedule> drop_fraction = {};
  /// Whether an algorithm that drops and grows gives rows and columns that have lost all their
  /// nonzeros new ones first, so that no neuron stays cut off. Off by default, as in the papers;
  /// for layers with a few nonzeros a row.
  bool keep_alive = false;

  /// The keys of SparsityOptions, and `update`. `drop_fraction` and `keep_alive` are read by those
  /// that use them.
  static DynamicOptions from_config(const Config& entry, uint64_t seed);
};

/// Base of algorithms with an update schedule. A user's algorithm overrides `type` and
/// `update_mask`, which is called on update steps only, and works on every layout: masks are made
/// from the nonzeros, a bit a position. For parameters of more than 2^32 positions derive from
/// DynamicPatternAlgorithm instead.
///
/// Masks start full (dense) unless step 0 is an update step, then as the init method makes them.
class DynamicSparsityAlgorithm : public SparsityAlgorithm {
 public:
  explicit DynamicSparsityAlgorithm(DynamicOptions options);
  ~DynamicSparsityAlgorithm() override;

  /// Counts the step; on an update step asks for each parameter's new mask, with the new step's
  /// target.
  void update(Optimizer& optimizer) override;
  const UpdateSchedule& update_schedule() const { return update_schedule_; }

  void foresee(std::vector<PlannedParameter>& planned, int64_t steps) const override;

 protected:
  /// The new mask of a parameter. `mask` is its present one, `sparsity` the target in [0, 1].
  /// Positions in both masks keep value and optimizer state; new ones start at zero.
  virtual BitMask update_mask(const Parameter& parameter, const BitMask& mask, float sparsity) = 0;
  /// The pattern-level hook below it: the same in terms of positions, in time and memory that
  /// follow the nonzeros. By default asks update_mask. *Errors:* StateError where a mask would have
  /// more than 2^32 bits.
  virtual Positions update_positions(const Parameter& parameter, const Positions& present,
                                     float sparsity);
  /// Whether the update at `step` needs the dense gradient of that step's backward. Asked before
  /// the forward.
  virtual bool wants_dense_gradient(int64_t /*step*/) const { return false; }
  /// Whether that gradient takes the place of the parameters' own, which are then not computed;
  /// `before_step` must give them one.
  virtual DenseGradient::Use use_of_dense_gradient() const { return DenseGradient::Use::Beside; }
  /// Changes the mask of one parameter on an update step. By default to `update_positions`.
  virtual void update_parameter(Parameter& parameter);

  /// Nonzeros an update leaves of `nnz`, by count alone: for the plan. The target by default.
  virtual int64_t nnz_after_update(int64_t /*nnz*/, int64_t target, int64_t /*groups*/,
                                   int64_t /*step*/, int64_t /*updates*/) const {
    return target;
  }
  /// Whether this algorithm drops by a fraction, so that the plan looks at it.
  virtual bool uses_drop_fraction() const { return false; }

  /// The dense gradient collected in this step: computed here for a compressed parameter, numel
  /// floats. *Errors:* StateError when it was not asked for before the forward, or would have more
  /// than 2^31 elements.
  const Tensor& dense_gradient(const Parameter& parameter) const;
  /// The same, to be changed, and forgotten here.
  Tensor take_dense_gradient(const Parameter& parameter) const;
  /// The same row by row, as grow_maximum reads it: nothing whole is made. Valid until the gradient
  /// is zeroed. *Errors:* StateError when it was not asked for.
  ScoreRows gradient_rows(const Parameter& parameter) const;
  /// Fraction to drop at this step, in [0, 1].
  float drop_fraction() const { return drop_fraction_at(step(), updates()); }
  float drop_fraction_at(int64_t step, int64_t updates) const;
  bool keeps_alive() const { return keep_alive_; }

  Positions initial_positions(const Parameter& parameter) override;
  /// *Errors:* StateError when a mask of the parameter would have more than 2^32 bits.
  void require_bits(const Parameter& parameter) const;
  void on_apply(Module& module) override;
  void release() override;
  /// Takes the observers off; the next forward that wants dense gradients installs new ones.
  void stop_observing();

 private:
  void check_schedules(const std::vector<int64_t>& updates, int64_t steps) const;
  void observe_gradients();
  DenseGradient& collected(const Parameter& parameter) const;
  DenseGradient& whole_gradient(const Parameter& parameter) const;

  UpdateSchedule update_schedule_;
  Schedule drop_fraction_;
  bool keep_alive_;
  HookHandle forward_hook_;
  std::map<const Parameter*, std::shared_ptr<DenseGradient>> gradients_;
};

/// Base of dynamic algorithms in terms of positions: for parameters of any size. Overrides `type`
/// and `update_positions`.
class DynamicPatternAlgorithm : public DynamicSparsityAlgorithm {
 public:
  using DynamicSparsityAlgorithm::DynamicSparsityAlgorithm;

 protected:
  Positions update_positions(const Parameter& parameter, const Positions& present,
                             float sparsity) override = 0;
  BitMask update_mask(const Parameter& parameter, const BitMask& mask, float sparsity) final;
};

}  // namespace lacuna
