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
  /// Options of the data from `calibrate_on`.
  CalibrationOptions calibration = {};

  /// From the keys of SparsityOptions except init_method, and `granularity`, `least_squares`,
  /// `calibration`, `damping` (sparsegpt, admm), `block` (sparsegpt), `rounds` (admm) and, with
  /// `least_squares`, `least_squares_damping`. *Errors:* ConfigError.
  static OneShotPruningOptions from_config(const Config& entry, OneShotMethod method,
                                           uint64_t seed);
};

/// Prunes by magnitude, Wanda, SparseGPT or ADMM (sparsity/one_shot/one_shot.h) at its first
/// training step, before the forward pass, or when `prune` is called; then keeps the masks, as
/// `static` does. Weights are pruned in the order of a forward pass, each by its inputs in the
/// already pruned model, with one layer's Gram matrix in memory at a time. The weights of several
/// OneShotPruning in a Group are pruned in one such order. Positions that are already pruned stay
/// pruned: a higher sparsity prunes further.
///
/// Weights of linear layers and convolutions (group by group) can be pruned by inputs; magnitude
/// without least squares prunes any parameter of two dimensions or more.
class OneShotPruning final : public SparsityAlgorithm {
 public:
  /// *Errors:* ConfigError if the sparsity is not a constant in [0, 1), or if the options cannot be
  /// combined.
  explicit OneShotPruning(OneShotPruningOptions options);

  std::string_view type() const override { return to_string(pruning_.method); }
  /// The existing masks: it prunes within them.
  FirstMasks first_masks() const override { return FirstMasks::Own; }

  /// Sets the calibration examples. Magnitude without least squares needs none: its errors are then
  /// those for independent inputs of equal size, ‖Ŵ − W‖² / ‖W‖², and no Gram matrix is computed.
  /// With examples, errors are those of the outputs on them, as for all other methods.
  void calibrate_with(CalibrationRun run) { run_ = std::move(run); }
  void calibrate_on(const CalibrationData& data) override;

  /// *Errors:* ConfigError for a parameter that the method cannot prune.
  void adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source) override;
  /// Prunes now, unless this was already done: with this algorithm, and with all others of the same
  /// Group that manage parameters. *Errors:* StateError before `apply(module)` and without
  /// calibration examples; ConfigError for a weight that no forward pass multiplies by; those of
  /// prune_one_shot, with the layer's name. The layers before it are then already pruned. *Cost:*
  /// for each layer a forward pass over the calibration examples up to the layer (one for layers
  /// with the same input), and prune_one_shot.
  void prune();
  /// Whether it is applied to weights that the next training step prunes.
  bool is_waiting() const { return module_ != nullptr && !has_pruned_ && !weights().empty(); }
  /// The weights named here become multiples of int8 steps when they are pruned
  /// (OneShotOptions::grid). *Requires* weights of linear layers, and that nothing is pruned yet.
  void bring_to_grid(const std::set<std::string>& names, GridClip clip, bool rounds_to_nearest);
  /// The step of each output of these weights, by name.
  const std::map<std::string, std::vector<float>>& grid_scales() const { return grid_scales_; }
  /// The records of pruning, in order; empty if a checkpoint states that it is done.
  const std::vector<MaskUpdate>& pruned() const { return pruned_; }

  void update(Optimizer&) override;
  void forecast(Forecast& forecast) const override;
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

 protected:
  /// The existing mask: it is pruned later.
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
  Module* module_ = nullptr;  // outlives this, as owner of the parameters
  bool has_pruned_ = false;
  bool is_reported_ = true;  // by the update of the step that it pruned in
  std::vector<MaskUpdate> pruned_;
};

/// The OneShotPruning that an algorithm is or contains, in order.
std::vector<OneShotPruning*> one_shot_parts(SparsityAlgorithm& algorithm);

/// Prunes what the next training step would prune, before it: for whoever changes the values that
/// the step computes with. *Errors:* those of OneShotPruning::prune.
void prune_waiting(SparsityAlgorithm& algorithm);

}  // namespace lacuna
