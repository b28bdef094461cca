// OneShotPruning: prunes a trained model once, layer by layer, and keeps the masks.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/sparsity/algorithm.h"
#include "lacuna/sparsity/calibration/calibration.h"
#include "lacuna/sparsity/one_shot/one_shot.h"

namespace lacuna {

struct OneShotPruningOptions {
  SparsityOptions common = {};  ///< a constant sparsity; init_method is ignored
  /// How each layer is pruned. `keep_of_parts` stays empty.
  OneShotOptions pruning = OneShotOptions::defaults(OneShotMethod::Wanda);
  /// Of the data given by `calibrate_on`.
  CalibrationOptions calibration = {};

  /// From the keys of SparsityOptions but init_method, and `granularity`, `least_squares`,
  /// `calibration`, `damping` (sparsegpt, admm), `block` (sparsegpt), `rounds` (admm) and, with
  /// `least_squares`, `least_squares_damping`. *Errors:* ConfigError.
  static OneShotPruningOptions from_config(const Config& entry, OneShotMethod method,
                                           uint64_t seed);
};

/// Prunes by magnitude, Wanda, SparseGPT or ADMM (sparsity/one_shot/one_shot.h) at its first
/// training step, before the forward pass, or when `prune` is called; then keeps the masks, as
/// `static` does. Weights are pruned in the order in which a forward pass meets them, each by the
/// inputs that the pruned ones before it give, with one layer's Gram matrix in memory at a time.
/// Those of several OneShotPruning in a Group are pruned in one such order. What parameters have no
/// position for stays so: a sparser one prunes further.
///
/// Weights of linear layers and convolutions, all groups of these one by one, can be pruned by
/// inputs; by magnitude without least squares any parameter of two dimensions or more.
class OneShotPruning final : public SparsityAlgorithm {
 public:
  /// *Errors:* ConfigError when the sparsity is no constant in [0, 1), or the options do not go
  /// with each other.
  explicit OneShotPruning(OneShotPruningOptions options);

  std::string_view type() const override { return to_string(pruning_.method); }
  /// The masks that there are: it prunes within them.
  FirstMasks first_masks() const override { return FirstMasks::Own; }

  /// Gives it the examples that it learns inputs from. Magnitude without least squares needs none:
  /// its errors are then those for inputs that are independent and of one size, ‖Ŵ − W‖² / ‖W‖²,
  /// and no Gram matrix is made. With examples they are of the outputs on these, as all others'
  /// are.
  void calibrate_with(CalibrationRun run) { run_ = std::move(run); }
  void calibrate_on(const CalibrationData& data) override;

  /// *Errors:* ConfigError for a parameter that the method does not fit.
  void adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source) override;
  /// Prunes now, unless it has: this one, and all others of what it is a part of that have
  /// parameters in charge. *Errors:* StateError before `apply(module)` and without examples to
  /// calibrate on; ConfigError for a weight that no forward pass multiplies with; those of
  /// prune_one_shot, with the layer's name. Layers before it have been pruned then.
  /// *Cost:* for each layer a forward pass over the calibration examples as far as the layer (one
  /// for layers that are given the same input), and prune_one_shot.
  void prune();
  /// Those of the weights that are named here become multiples of int8 steps as they are pruned
  /// (OneShotOptions::grid). *Requires* weights of linear layers, and that nothing is pruned yet.
  void bring_to_grid(const std::set<std::string>& names, GridClip clip, bool rounds_to_nearest);
  /// What a step is worth in each output of these, by name.
  const std::map<std::string, std::vector<float>>& grid_scales() const { return grid_scales_; }
  /// The records of pruning, in its order; empty if a checkpoint states that it is done.
  const std::vector<MaskUpdate>& pruned() const { return pruned_; }

  void update(Optimizer&) override;
  void forecast(Forecast& forecast) const override;
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

 protected:
  /// What there is: it is pruned later.
  MaskSet initial_mask(const SparseWeight& weight, MaskSource) override { return weight.mask(); }

 private:
  class Pass;

  bool needs_inputs() const {
    return pruning_.method != OneShotMethod::Magnitude || pruning_.least_squares;
  }
  void require_work();
  void prune_weight(SparseWeight& weight, const std::vector<InputGram>& grams);
  int64_t count_to_keep(const SparseWeight& weight, const MaskSet& present) const;

  OneShotOptions pruning_;
  std::set<std::string> on_grid_;
  OneShotOptions grid_pruning_;  // for these
  std::map<std::string, std::vector<float>> grid_scales_;
  CalibrationOptions calibration_;
  CalibrationRun run_;
  Module* module_ = nullptr;  // outlives this, as parameters' owner
  bool has_pruned_ = false;
  bool is_reported_ = true;  // by the update of the step that it pruned in
  std::vector<MaskUpdate> pruned_;
};

/// The OneShotPruning that an algorithm is or consists of, in their order.
std::vector<OneShotPruning*> one_shot_parts(SparsityAlgorithm& algorithm);

}  // namespace lacuna
