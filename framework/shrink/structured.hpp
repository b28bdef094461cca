// Structured: whole units (neurons, channels, heads) masked step by step while a model trains.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lacuna/framework/shrink/model_units.hpp"
#include "lacuna/framework/shrink/shrink_options.hpp"
#include "lacuna/framework/shrink/unit_rounding.hpp"
#include "lacuna/sparsity/dynamic.h"
#include "lacuna/sparsity/example_user.hpp"

namespace lacuna {

/// On update steps masks the units with the smallest scores, up to the part that the sparsity
/// schedule asks for at that step: rows of the weights that give a unit, input columns of those
/// that take it. What is masked stays so. As all weights that take a unit are masked, nothing of it
/// reaches the outputs, and `lacuna shrink --method dead` removes it without changing them.
///
/// Scores are those of `lacuna shrink`: by magnitude of the weights as they are; by saliency, (Σ w
/// · ∂loss/∂w)² summed over the steps since the last update; by the error of the outputs of layers
/// on calibration examples, with the weights as they are; dead units are those whose saliency is
/// 0, so that in none of these steps did anything depend on them. Counts of units are rounded as by
/// `lacuna shrink`; `auto` chooses the multiples from the last value of the schedule, if that is a
/// number, so they are the same at all updates. *Cost:* by magnitude and error nothing
/// but at updates, which cost that of the scores; else O(elements of all weights) a step, until
/// updates stop.
class Structured final : public DynamicSparsityAlgorithm, public ExampleUser {
 public:
  struct Options {
    DynamicOptions common = {};
    /// `to` and `least_squares` are not used, and the calibration only by Error.
    ShrinkOptions units = {};
    /// What the sparsity is a part of: a budget, or the number of units.
    std::optional<ShrinkBudget> budget = {};
  };
  explicit Structured(Options options);
  /// From an entry's keys. *Errors:* ConfigError.
  static std::unique_ptr<SparsityAlgorithm> from_config(const Config& entry, uint64_t seed);
  /// Whether such an entry reads `calibration`: its criterion is `error`.
  static bool calibrates(const Config& entry);

  /// Whether a parameter's rows and columns can be masked, so that they cost nothing.
  static bool can_mask(const Parameter& parameter);

  std::string_view type() const override { return "structured"; }
  FirstMasks first_masks() const override { return FirstMasks::Own; }
  /// Required by Error before `adopt`; the others use no examples.
  void calibrate_on(const CalibrationData& data) override;
  void use_model(const Module& model, const Shape& example,
                 std::span<const ModuleRow> rows) override;
  /// *Errors:* StateError before `use_model` and `calibrate_on`; ConfigError when another algorithm
  /// has a weight that takes one of the units.
  void adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source) override;
  void update(Optimizer& optimizer) override;
  /// Counts of uniform shares; of global ones, what they would be if the shares were uniform.
  void forecast(Forecast& forecast) const override;
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

 protected:
  MaskSet initial_mask(const SparseWeight& weight, MaskSource source) override;
  MaskSet update_mask(const SparseWeight& weight, const MaskSet& mask, float sparsity) override;
  void before_step(Optimizer& optimizer, StepScopes& scopes) override;

 private:
  bool uses_gradients() const {
    return units_of_.method == ShrinkMethod::Saliency || units_of_.method == ShrinkMethod::Dead;
  }
  std::vector<double> current_scores() const;
  void fix_unmasked_units();
  void choose_rounding();
  BudgetSearch search_to(double removed) const;
  std::vector<std::vector<int32_t>> blocks_by(const std::vector<double>& scores,
                                              const std::vector<int64_t>& multiples) const;
  KeptUnits present_units() const;
  KeptUnits choose(KeptUnits present, std::vector<double> scores, double removed) const;
  double part_left(const KeptUnits& kept) const;
  void require_budget(double removed) const;

  ShrinkOptions units_of_;
  std::optional<ShrinkBudget> budget_;
  std::optional<int64_t> stop_;  // of updates
  const Module* model_ = nullptr;
  Module* module_ = nullptr;  // the model, to run it on calibration examples
  CalibrationRun run_;
  std::vector<ModuleRow> rows_;
  std::optional<ModelUnits> units_;
  Rounding rounding_;
  KeptUnits next_;              // of the update that is made
  std::vector<float> changes_;  // saliency since the last update
};

}  // namespace lacuna
