// SparsityAlgorithm: makes parameters sparse and keeps them so through training.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/core/hooks.h"
#include "lacuna/framework/core/state_dict.h"
#include "lacuna/framework/layouts/cost_model.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/optimizers/optimizer.h"
#include "lacuna/sparsity/competition.h"
#include "lacuna/sparsity/filter.h"
#include "lacuna/sparsity/layout_option.h"
#include "lacuna/sparsity/mask_init.h"
#include "lacuna/sparsity/structure.h"
#include "lacuna/sparsity/target.h"

namespace lacuna {

class SparsityAlgorithm;
struct DeadLines;

/// What every algorithm has in common.
struct SparsityOptions {
  /// Fraction of zeros in [0, 1], constant or a schedule over the steps (or a density, a fan-in).
  SparsityTarget sparsity = {};
  /// How the first mask is made; random by default.
  InitMethod init_method = {};
  /// Which parameters; weights by default.
  ParameterFilter param_filter = {};
  /// Separate competitions within a tensor; none by default.
  ScoreGroups groups = {};
  /// The shape that masks have: N:M, blocks; none by default. With N:M the sparsity is left out, or
  /// equals 1 − N/M, or is a schedule that ends there.
  Structure structure = {};
  /// How the sparsity is shared out among the parameters; each the same by default.
  Distribution distribution = {};
  /// How the parameters are stored; the fastest way for each by default.
  LayoutOption layout = {};
  /// Of random masks and random growth.
  uint64_t seed = 0;

  /// From a map's keys sparsity | schedule | density | fan_in, init_method, param_filter,
  /// balance_in_groups, balance_out_groups, pattern, distribution, layout. *Errors:* ConfigError.
  static SparsityOptions from_config(const Config& entry, uint64_t seed);
};

/// What one topology update did to one parameter.
struct MaskUpdate {
  std::string parameter;
  double target_sparsity = 0.0;
  double actual_sparsity = 0.0;
  int64_t nnz = 0;
  int64_t dropped = 0;  ///< positions that were in the old mask only
  int64_t grown = 0;    ///< positions that are in the new mask only
  double churn = 0.0;   ///< grown / nnz
  /// Fraction of positions that have ever been in the mask (ITOP rate); not known of parameters of
  /// more than 2^30 positions.
  std::optional<double> ever_active = {};
  int64_t dead_rows = 0;     ///< rows without a nonzero
  int64_t dead_columns = 0;  ///< columns without a nonzero
  std::string layout = {};   ///< how it is stored from now on
};

/// What will happen to one parameter, as far as it can be counted before any training.
struct PlannedParameter {
  std::string parameter;
  Shape shape;
  std::string algorithm;
  std::string chosen_by;  ///< the filter that chose it
  int64_t initial_nnz = 0;
  int64_t final_nnz = 0;
  std::vector<int64_t> update_steps;  ///< steps after which its mask changes
  std::string layout = {};            ///< how it is stored with its initial nonzeros
  std::string final_layout = {};      ///< and with its final ones
  std::string compressed = {};        ///< what `layout: auto` has for it besides masked
  bool changes_every_step = false;    ///< see Parameter
};

using TargetSparsityHook =
    std::function<void(SparsityAlgorithm& algorithm, const std::string& names, double target)>;
using ComputedSparsityHook =
    std::function<void(SparsityAlgorithm& algorithm, const Parameter& parameter, double actual)>;

/// Base of all algorithms. Use: `model.apply(algorithm); optimizer.apply(algorithm);`, in this
/// order; from then on every `optimizer.step()` prunes parameters and states after the update and
/// then, with `autoupdate`, calls `update`. The algorithm must outlive neither model nor optimizer:
/// when it goes, its hooks go.
///
/// A subclass overrides `update`, and `initial_positions` where the first mask is not the init
/// method's.
class SparsityAlgorithm {
 public:
  /// *Errors:* ConfigError when the structure does not go with other options.
  explicit SparsityAlgorithm(SparsityOptions options);
  virtual ~SparsityAlgorithm();
  SparsityAlgorithm(const SparsityAlgorithm&) = delete;
  SparsityAlgorithm& operator=(const SparsityAlgorithm&) = delete;

  /// Its name in a configuration, as in "rigl".
  virtual std::string_view type() const = 0;

  /// Whether each optimizer step ends with `update`. When off, call `update` by hand.
  bool autoupdate = true;
  /// Examples in a training batch: what `layout: auto` reckons with. To be set before `apply`.
  int64_t expected_batch = 128;
  /// Under `layout: auto`, the density up to which each parameter is stored as csr, or in the
  /// layout of its structure, and masked above it: what an earlier run found, or an entry made by
  /// the cost model when it is first needed. Shared with the algorithms of a group or of phases. To
  /// be set before `apply`.
  std::shared_ptr<DensityLimits> csr_up_to = std::make_shared<DensityLimits>();

  /// Chooses the parameters and gives them their first masks. *Errors:* ConfigError when the filter
  /// chooses nothing; StateError on a second call, or when a parameter has an algorithm already.
  virtual void apply(Module& module);
  /// Hooks the optimizer's step. *Errors:* StateError before `apply(module)`, on a second call, or
  /// when the optimizer does not train one of the parameters.
  void apply(Optimizer& optimizer);

  /// Called after each optimizer step, or by hand: counts the step, and changes masks where it is
  /// time to.
  virtual void update(Optimizer& optimizer) = 0;

  /// Steps counted so far.
  int64_t step() const { return step_; }
  /// Masks made by schedule so far; the first one counts where step 0 is an update step.
  int64_t updates() const { return updates_; }
  const std::vector<ParameterPtr>& parameters() const { return parameters_; }
  /// Sparsity aimed at for a parameter at the last update, in [0, 1].
  virtual double target_sparsity(const Parameter& parameter) const;
  /// What the last topology update did, one entry per parameter; empty when the last step made
  /// none.
  virtual std::vector<MaskUpdate> last_update() const { return last_update_; }

  /// What a run of `total_steps` will do, once applied to a model. *Errors:* ConfigError when the
  /// plan can only be a mistake.
  virtual std::vector<PlannedParameter> plan(int64_t total_steps) const;
  /// The plan's part that is the algorithm's own: from entries whose final_nnz is what it begins
  /// with, to what `steps` steps of it make of them. *Errors:* ConfigError.
  virtual void foresee(std::vector<PlannedParameter>& /*planned*/, int64_t /*steps*/) const {}
  /// Whether what it foresees is what will be: not where values or gradients decide on the number
  /// of nonzeros.
  virtual bool foresees_exactly() const { return true; }

  /// Called with the target at the first mask and at every update; `names` describes the filter.
  HookHandle register_target_sparsity_hook(TargetSparsityHook hook);
  /// Called for every parameter with the sparsity it got.
  HookHandle register_computed_sparsity_hook(ComputedSparsityHook hook);

  /// Moves parameters to the layouts that the options name; those under `auto` stay in theirs. For
  /// a checkpoint that was saved in another layout. *Errors:* ShapeError.
  virtual void restore_layouts();

  /// Everything but masks and values, which are in the model's state.
  virtual StateDict state_dict() const;
  /// *Errors:* CheckpointError.
  virtual void load_state_dict(const StateDict& state);

 protected:
  /// The first mask of a parameter that was chosen; by default the init method's.
  virtual Positions initial_positions(const Parameter& parameter);
  /// Called once the parameters are chosen, before the first masks are made.
  virtual void on_apply(Module& /*module*/) {}
  /// Called within `optimizer.step()` after backward and before the values change.
  virtual void before_step(Optimizer& /*optimizer*/) {}
  /// Called within `optimizer.step()` once the values have changed.
  virtual void after_step(Optimizer& optimizer);

  const SparsityOptions& options() const { return options_; }
  void count_step() { ++step_; }
  void count_update() { ++updates_; }
  /// Computes what is aimed at now, and calls the target hooks.
  void refresh_targets();
  /// Nonzeros aimed at for a parameter, as of the last `refresh_targets`; a multiple of the number
  /// of groups.
  int64_t target_nnz(const Parameter& parameter) const;
  /// The score groups of a parameter.
  GroupIndex groups(const Parameter& parameter) const {
    return GroupIndex(options_.groups, parameter.shape());
  }
  /// How positions of a parameter are kept and grown, as groups and structure allow.
  Competition competition(const Parameter& parameter) const {
    return Competition(options_.groups, options_.structure, parameter.shape());
  }
  /// Nonzeros aimed at for parameters of these shapes, in whole units and whole groups.
  /// *Errors:* ConfigError when the structure cannot be as sparse.
  std::vector<int64_t> targets_at(int64_t step, int64_t updates,
                                  const std::vector<Shape>& shapes) const;
  /// *Errors:* CheckpointError when a saved state is that of another algorithm.
  void require_own(const StateDict& state) const;
  /// The array that a saved state holds for a parameter, below `prefix` + "/".
  /// *Errors:* CheckpointError when it is absent or has another shape.
  static Tensor saved_array(const StateDict& state, const std::string& prefix,
                            const Parameter& parameter);
  /// Moves a parameter to a new mask in the layout chosen for it, notes what changed, and calls the
  /// hooks. *Cost:* O(nonzeros before and after).
  void set_positions(Parameter& parameter, const Positions& positions);
  /// The same where the positions there are, `present`, are at hand.
  void set_positions(Parameter& parameter, const Positions& positions, const Positions& present);
  /// The same. *Errors:* ShapeError when the sizes differ.
  void set_mask(Parameter& parameter, const BitMask& mask);
  /// The same by bits alone. *Requires* that the mask has the structure, and a master.
  void set_selected_mask(Parameter& parameter, const BitMask& mask);
  /// The dense array that a parameter's values are taken from in each new pattern; undefined where
  /// they stay what they were.
  virtual Tensor master_of(const Parameter& /*parameter*/) const { return {}; }
  /// A parameter's master in a pattern, as its values. The gradient is dropped.
  static void use_master(Parameter& parameter, const PatternPtr& pattern, const Tensor& master);
  /// Where the masks come from when an algorithm takes charge.
  enum class FirstMasks {
    Make,     ///< `initial_mask`
    Inherit,  ///< those there are; where they hold more than the target, pruned to it by |w|
    Keep,     ///< those there are, as they are: a checkpoint's
  };
  /// Takes charge of parameters: what `apply(module)` does once it has chosen.
  void adopt(Module& module, std::vector<ParameterPtr> parameters,
             FirstMasks first = FirstMasks::Make);
  /// Lets the parameters go; their masks stay. Destructors call their own class's.
  virtual void release();
  /// The same where the parameters hold what a checkpoint says: their values stay, too.
  virtual void release_loaded() { release(); }
  /// The mask that `adopt` gives a parameter.
  virtual Positions first_positions(const Parameter& parameter, FirstMasks first);

 private:
  friend class Group;
  friend class Phases;
  /// What this one announces is announced by `outer`, which holds it, too.
  void forward_hooks_to(SparsityAlgorithm& outer);
  size_t index_of(const Parameter& parameter) const;
  /// The layout for a parameter with so many nonzeros; `compressible` when the pattern's own layout
  /// can hold them.
  const Layout& layout_for(const Parameter& parameter, int64_t nnz, bool compressible) const;
  /// What `layout: auto` has besides masked.
  const Layout& compressed_layout() const;
  /// The layout that so many nonzeros will have.
  const Layout& foreseen_layout(const Parameter& parameter, int64_t nnz) const;
  /// Whether the layout asked for can hold the positions; masked, which always can, is taken where
  /// it cannot. *Errors:* ConfigError when they do not have the structure.
  bool can_compress(const Parameter& parameter, const Positions& positions) const;
  int64_t nm_target(int64_t wanted, int64_t units) const;
  /// `present`: the positions there are; null where that is every one.
  void install(Parameter& parameter, const Positions& positions, const Positions* present);
  void name_final_layouts(std::vector<PlannedParameter>& planned) const;
  /// *Errors:* ConfigError when a parameter that is planned has no nonzero: counts are rounded
  /// down, and what is surely meant is a few.
  void require_nonzeros(const std::vector<PlannedParameter>& planned) const;

  /// The positions that have ever been in a mask.
  struct EverActive {
    BitMask bits;
    int64_t count = 0;
  };
  /// Null where they are not remembered.
  EverActive* ever_active(const Parameter& parameter);
  /// Adds what became of a parameter to the last update, and calls the hooks.
  void note_update(const Parameter& parameter, const DeadLines& dead, int64_t dropped,
                   int64_t grown);

  SparsityOptions options_;
  std::vector<ParameterPtr> parameters_;
  std::vector<int64_t> target_nnz_;                     // aligned with parameters_
  std::vector<double> target_sparsity_;                 // aligned with parameters_
  std::vector<std::optional<EverActive>> ever_active_;  // aligned with parameters_
  std::vector<MaskUpdate> last_update_;
  std::vector<HookHandle> optimizer_hooks_;
  HookList<SparsityAlgorithm&, const std::string&, double> target_hooks_;
  HookList<SparsityAlgorithm&, const Parameter&, double> computed_hooks_;
  int64_t step_ = 0;
  int64_t updates_ = 0;
};

}  // namespace lacuna
