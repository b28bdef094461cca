// The plan of an algorithm, as far as it can be computed before training, and the record of an
// update.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/layouts/pattern.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// The source of the masks when an algorithm takes charge of parameters.
enum class MaskSource {
  Made,       ///< the algorithm makes first masks
  Inherited,  ///< those of the previous phase, pruned if they have more than the target
  Loaded,     ///< those of a checkpoint: they do not change
};

/// The number of nonzeros of a parameter after a step.
struct PlannedCount {
  int64_t step = 0;
  int64_t nnz = 0;
  friend bool operator==(const PlannedCount&, const PlannedCount&) = default;
};

/// The plan for one parameter.
struct PlannedParameter {
  std::string parameter;
  Shape shape;
  std::string algorithm;
  std::string chosen_by;  ///< the filter that chose it
  int64_t initial_nnz = 0;
  int64_t final_nnz = 0;
  std::vector<int64_t> update_steps;  ///< steps after which its mask changes
  int64_t begin = 0;                  ///< steps done when it gets its initial nonzeros
  int64_t nnz_before = 0;             ///< its nonzeros before that, if it begins after step 0
  /// The steps after which its number of nonzeros changes, ascending; one-shot pruning in the first
  /// step does that after step 0. If an algorithm's forecast leaves it empty, the first update
  /// changes the initial number to the final one.
  std::vector<PlannedCount> changes = {};
  std::string layout = {};        ///< how it is stored with its initial nonzeros
  std::string final_layout = {};  ///< and with its final ones
  std::string compressed = {};    ///< the alternative of `layout: auto` to masked
  PatternShape pattern = {};      ///< of its masks
  PatternLifetime lifetime = PatternLifetime::ManySteps;  ///< of its masks
  const Parameter* source = nullptr;                      ///< alive as long as its model
};

/// The mean of a parameter's nonzeros over the examples of a run. `entries` are all of its plans,
/// in order, at least one; `examples_until` counts the examples of the steps up to one.
double mean_nnz(std::span<const PlannedParameter* const> entries, int64_t total_steps,
                const std::function<double(int64_t step)>& examples_until);

/// A plan under construction: the initial state of an algorithm, and the effect of its steps.
struct Forecast {
  int64_t steps = 0;
  /// How it takes charge. `initial_nnz` of the parameters is their number before that.
  MaskSource source = MaskSource::Made;
  std::vector<PlannedParameter> parameters = {};
  /// Whether the counts are exact: false if they depend on values or gradients.
  bool is_exact = true;

  /// The plans of all parameters, in order.
  std::vector<Shape> shapes() const {
    std::vector<Shape> all;
    for (const PlannedParameter& parameter : parameters) all.push_back(parameter.shape);
    return all;
  }
};

/// The effect of one topology update on one parameter.
struct MaskUpdate {
  std::string parameter;
  double target_sparsity = 0.0;
  double actual_sparsity = 0.0;
  int64_t nnz = 0;
  int64_t dropped = 0;  ///< positions that were in the old mask only
  int64_t grown = 0;    ///< positions that are in the new mask only
  double churn = 0.0;   ///< grown / nnz
  /// Fraction of positions that have ever been in the mask (ITOP rate); unknown for parameters with
  /// more than 2^30 positions.
  std::optional<double> ever_active = {};
  int64_t dead_rows = 0;     ///< rows (outputs) without a nonzero
  int64_t dead_columns = 0;  ///< columns (inputs) without a nonzero; of a convolution, channels
  std::string layout = {};   ///< how it is stored from now on
  /// ‖X(Ŵ − W)ᵀ‖² / ‖XWᵀ‖² over calibration inputs X, if one-shot pruning made the mask.
  std::optional<double> relative_error = {};
  std::vector<std::string> messages = {};  ///< messages for the user
};

}  // namespace lacuna
