// SparsityAlgorithm: makes parameters sparse and keeps them so through training.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/core/hooks.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/optimizers/optimizer.h"
#include "lacuna/sparsity/calibration/calibration.h"
#include "lacuna/sparsity/sparsity_options.h"
#include "lacuna/sparsity/weights/layout_policy.h"
#include "lacuna/sparsity/weights/plan.h"
#include "lacuna/sparsity/weights/sparse_weight.h"

namespace lacuna {

class SparsityAlgorithm;

using TargetSparsityHook =
    std::function<void(SparsityAlgorithm& algorithm, const std::string& names, double target)>;
using ComputedSparsityHook =
    std::function<void(SparsityAlgorithm& algorithm, const Parameter& parameter, double actual)>;

/// The first masks of an algorithm if the weights were loaded (`model.init_from`).
enum class FirstMasks {
  Made,     ///< masks made by `init_method`, or the loaded ones, pruned to the target
  Dense,    ///< dense weights, or the loaded masks if there are any
  Largest,  ///< the largest part of the loaded weights, whatever their masks; no `init_method`
  Own,      ///< chosen by the algorithm itself: `init_method` stays as configured
};

/// Base of all algorithms. Use: `model.apply(algorithm); optimizer.apply(algorithm);`, in this
/// order; from then on every `optimizer.step()` prunes parameters and states after the update and
/// then, with `autoupdate`, calls `update`. It may be destroyed before or after model and
/// optimizer; its hooks go with it.
///
/// A subclass overrides `type` and `update`, and `initial_mask` if the first mask does not come
/// from the init method. Algorithms may consist of others, their parts (Group, Phases).
class SparsityAlgorithm {
 public:
  /// `lifetime`: how long its masks are kept. *Errors:* ConfigError if the pattern cannot be
  /// combined with other options.
  explicit SparsityAlgorithm(SparsityOptions options,
                             PatternLifetime lifetime = PatternLifetime::ManySteps);
  virtual ~SparsityAlgorithm();
  SparsityAlgorithm(const SparsityAlgorithm&) = delete;
  SparsityAlgorithm& operator=(const SparsityAlgorithm&) = delete;

  /// Its name in a configuration, as in "rigl".
  virtual std::string_view type() const = 0;

  /// The first masks if the weights were loaded; for an algorithm with parts, those of its first
  /// part. An override is needed only if masks do not come from `init_method`.
  virtual FirstMasks first_masks() const {
    return parts_.empty() ? FirstMasks::Made : parts_.front()->first_masks();
  }
  /// Whether its options require zeros from the first step on.
  bool begins_sparse() const;
  /// Whether its options have `init_method: inherit`.
  bool inherits_masks() const { return options_.init_method.inherits(); }

  /// Whether each optimizer step ends with `update`. When off, call `update` by hand. A part
  /// updates if this is on both for it and for the algorithm that contains it.
  bool autoupdate = true;
  /// Inputs of `layout: auto`, shared with all parts. Must be set before `apply`.
  CompressionLimits& compression() { return layouts_.limits(); }
  const CompressionLimits& compression() const { return layouts_.limits(); }

  /// Gives the parts that prune by inputs of layers (OneShotPruning) the data for calibration. Must
  /// be called before `apply`. *Errors:* ConfigError if one of them requests more examples than
  /// there are.
  virtual void calibrate_on(const CalibrationData& data);

  /// Chooses the parameters and gives them their first masks. *Errors:* ConfigError if the filter
  /// chooses nothing; ShapeError if groups or pattern do not fit a parameter; StateError on a
  /// second call, or if a parameter already has an algorithm.
  void apply(Module& module);
  /// Hooks the optimizer's step. *Errors:* StateError before `apply(module)`, on a second call
  /// without `release_optimizer`, or if the optimizer does not train one of the parameters, or one
  /// was frozen in the meantime.
  void apply(Optimizer& optimizer);

  /// Manages parameters of a module, independent of the filter: what `apply(module)` does after its
  /// choice. An override prepares its data between `take_charge` and `start_masks`.
  virtual void adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source);
  /// Releases the parameters; their masks stay. *Errors:* StateError within one of its own updates
  /// or hooks, or of an algorithm that contains it.
  void release();
  /// Undoes `apply(optimizer)`: the optimizer's steps no longer prune or update masks, and the
  /// algorithm may be applied to another optimizer of the same parameters. *Errors:* as `release`.
  void release_optimizer();

  /// Called after each optimizer step, or by hand: counts the step, and changes masks if an update
  /// is due.
  virtual void update(Optimizer& optimizer) = 0;

  /// Steps counted so far.
  int64_t step() const { return step_; }
  /// Number of updates by the schedule so far; the first masks count if step 0 is an update step.
  int64_t updates() const { return updates_; }
  const std::vector<ParameterPtr>& parameters() const { return parameters_; }
  /// The parameters that it may make sparse at some time: without those that only `dense` has,
  /// alone or in phases.
  std::vector<ParameterPtr> sparse_parameters() const;
  /// Whether it may make a parameter sparse that it manages, or will manage: true for all
  /// parameters, unless it has parts.
  virtual bool makes_sparse(const ParameterPtr& parameter) const;
  const ParameterFilter& filter() const { return options_.param_filter; }
  const SparsityTarget& sparsity() const { return options_.sparsity; }
  /// Sets another target sparsity: from the first masks on, or after `apply` from the next update
  /// on. It is an option, which `state_dict` does not contain. *Errors:* ConfigError, as in the
  /// constructor; StateError if the algorithm cannot change its sparsity.
  void set_sparsity(SparsityTarget sparsity);
  /// The names of the parameters in `parameters` that its filter, or the filter of one of its
  /// parts, would choose if they were not frozen, for a message that they are not pruned.
  std::vector<std::string> frozen_choices(const std::vector<ParameterPtr>& parameters) const;
  /// Target sparsity of a parameter at the last update, in [0, 1]. *Errors:* StateError if it is
  /// not one of `parameters()`.
  double target_sparsity(const Parameter& parameter) const;
  /// The pattern of a parameter's masks; unstructured if the algorithm does not manage it.
  PatternShape pattern(const Parameter& parameter) const;
  /// The changes of the last topology update, one entry per parameter; empty if the last step made
  /// none.
  const std::vector<MaskUpdate>& last_update() const { return last_update_; }

  /// Its parts, and the algorithm that it is a part of; null if there is none.
  const std::vector<SparsityAlgorithm*>& parts() const { return parts_; }
  SparsityAlgorithm* outer() const { return outer_; }

  /// The plan of a run of `total_steps`, once applied to a model. *Errors:* ConfigError if the plan
  /// is certainly a mistake.
  std::vector<PlannedParameter> plan(int64_t total_steps) const;
  /// Completes a plan that begins with other parameters than the managed ones, or with another
  /// state of theirs: the state at the beginning of a later phase.
  std::vector<PlannedParameter> plan(Forecast begun) const;
  /// Forecasts the effect of the steps on the parameters: sets `initial_nnz` (after it has taken
  /// charge), `final_nnz` and `update_steps`. *Errors:* ConfigError.
  virtual void forecast(Forecast& forecast) const;

  /// Called with the target at the first mask and at every update; `names` describes the filter.
  HookHandle register_target_sparsity_hook(TargetSparsityHook hook);
  /// Called for every parameter with its actual sparsity.
  HookHandle register_computed_sparsity_hook(ComputedSparsityHook hook);

  /// Moves parameters to the layouts that the options name; those under `auto` keep their layout.
  /// For a checkpoint that was saved in another layout. *Errors:* ShapeError.
  void restore_layouts();

  /// Everything but masks and values, which are in the model's state.
  virtual StateDict state_dict() const;
  /// *Errors:* CheckpointError; StateError as in `release`.
  virtual void load_state_dict(const StateDict& state);

 protected:
  /// While it lives, the algorithm is at work on its weights, with calls of a subclass or of hooks
  /// between: nothing may release them.
  class AtWork {
   public:
    explicit AtWork(SparsityAlgorithm& algorithm) : algorithm_(algorithm) { ++algorithm_.at_work_; }
    ~AtWork() { --algorithm_.at_work_; }
    AtWork(const AtWork&) = delete;
    AtWork& operator=(const AtWork&) = delete;

   private:
    SparsityAlgorithm& algorithm_;
  };

  /// The mask that a parameter gets when the algorithm takes charge of it: by default that of the
  /// init method, or, for an inherited mask, the existing one, pruned to the target by |w|.
  virtual MaskSet initial_mask(const SparseWeight& weight, MaskSource source);
  /// Called within `optimizer.step()` after backward and before the values change. Scopes that it
  /// adds to `scopes` last until the values have changed.
  virtual void before_step(Optimizer& /*optimizer*/, StepScopes& /*scopes*/) {}

  /// Refuses a target that can no longer be set. By default, all are refused. *Errors:*
  /// ConfigError, StateError.
  virtual void require_settable(const SparsityTarget& sparsity) const;

  const SparsityOptions& options() const { return options_; }
  /// Replaces the constructor's options, except the layout and the pattern.
  void set_options(const SparsityOptions& options) { options_ = options.checked(); }
  /// The parameters that it manages, each with its state. Without those of parts.
  std::deque<SparseWeight>& weights() { return weights_; }
  const std::deque<SparseWeight>& weights() const { return weights_; }
  /// Gives a parameter another mask, in the layout chosen for it, records the changes, and calls
  /// the hooks. `present` is the current mask, if it is available. *Errors:* ShapeError if the mask
  /// has another size. *Cost:* O(nonzeros before and after).
  void set_mask(SparseWeight& weight, const MaskSet& mask, const MaskSet* present = nullptr);
  /// The same, but returns the record of the change instead of storing it for `last_update`.
  /// `values`: a dense array in its shape with the new values, if they change too.
  MaskUpdate install(SparseWeight& weight, const MaskSet& mask, const MaskSet* present = nullptr,
                     const Tensor* values = nullptr);
  /// Adds to the record of the last update, here and in the algorithm that contains this one.
  void report(const MaskUpdate& update);

  void count_step() { ++step_; }
  /// Reverts `count_step`, for an update that contains another one, which counts the step.
  void uncount_step() { --step_; }
  void count_update() { ++updates_; }
  /// Sets the weights' targets to the current ones, and calls the target hooks.
  void refresh_targets();
  /// Whether a step ends with an update of this algorithm.
  bool updates_itself() const {
    return autoupdate && (outer_ == nullptr || outer_->updates_itself());
  }
  /// Keeps a hook for as long as it manages the parameters.
  void keep_hook(HookHandle hook) { hooks_.push_back(std::move(hook)); }

  /// Makes weights from parameters, with their targets; their masks do not change yet.
  void take_charge(std::vector<ParameterPtr> parameters);
  /// Gives the weights their first masks.
  void start_masks(MaskSource source);

  /// Makes another algorithm a part of this one, and no longer of the one before: it shares this
  /// one's limits of layouts, its switch `autoupdate`, hooks and records. *Ownership:* the caller
  /// keeps the part.
  void add_part(SparsityAlgorithm& part);
  /// Releases a part, also during an update of the whole. `loaded`: the values come from a
  /// checkpoint and stay, too.
  static void release_part(SparsityAlgorithm& part, bool loaded) { part.release_weights(loaded); }
  /// States which parameters belong to the parts.
  void set_parameters(std::vector<ParameterPtr> parameters) { parameters_ = std::move(parameters); }

  /// Reads `step` of a saved state. *Errors:* CheckpointError if it belongs to another algorithm.
  void load_own(const StateDict& state);

 private:
  void release_weights(bool loaded);
  void require_idle(std::string_view call) const;
  bool is_at_work() const;  // it or one of its parts
  void open_scopes(Optimizer& optimizer, StepScopes& scopes);
  void after_step(Optimizer& optimizer);
  void share_limits(const SparsityAlgorithm& outer);
  void clear_updates();   // here and in parts
  void forget_updates();  // here and in the algorithm that contains this one
  void require_parameters(const Optimizer& optimizer) const;
  const SparseWeight* find(const Parameter& parameter) const;
  void complete(PlannedParameter& planned, bool is_exact) const;
  void require_inherited(const Forecast& forecast) const;

  SparsityOptions options_;
  LayoutPolicy layouts_;
  std::vector<ParameterPtr> parameters_;
  std::deque<SparseWeight> weights_;
  SparsityAlgorithm* outer_ = nullptr;     // the algorithm that contains this one
  std::vector<SparsityAlgorithm*> parts_;  // in the order they were added
  std::vector<MaskUpdate> last_update_;
  std::vector<HookHandle> hooks_;
  std::vector<HookHandle> step_hooks_;  // of the optimizer
  int at_work_ = 0;                     // how many AtWork there are
  HookList<SparsityAlgorithm&, const std::string&, double> target_hooks_;
  HookList<SparsityAlgorithm&, const Parameter&, double> computed_hooks_;
  int64_t step_ = 0;
  int64_t updates_ = 0;
};

}  // namespace lacuna
