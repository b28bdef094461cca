// What an algorithm will do, as far as it can be counted before any training, and what an update
// did.
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

/// Where the masks come from when an algorithm takes charge of parameters.
enum class MaskSource {
  Made,       ///< the algorithm makes first masks
  Inherited,  ///< those that the phase before left; where they hold more than the target, pruned
  Loaded,     ///< a checkpoint's: they stay as they are
};

/// How many nonzeros a parameter has after a step.
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
  int64_t nnz_before = 0;             ///< its nonzeros before that, where it begins later than at 0
  /// The steps after which it has another number of nonzeros, ascending. Where an algorithm's
  /// forecast leaves it empty, its first update makes the final ones of the initial ones.
  std::vector<PlannedCount> changes = {};
  std::string layout = {};        ///< how it is stored with its initial nonzeros
  std::string final_layout = {};  ///< and with its final ones
  std::string compressed = {};    ///< the alternative of `layout: auto` to masked
  PatternShape pattern = {};      ///< of its masks
  PatternLifetime lifetime = PatternLifetime::ManySteps;  ///< of its masks
  const Parameter* source = nullptr;                      ///< alive as long as its model
};

/// The mean of a parameter's nonzeros over the examples of a run. `entries` are all that are
/// planned for it, in order, one at least; `examples_until` counts the examples of the steps up to
/// one.
double mean_nnz(std::span<const PlannedParameter* const> entries, int64_t total_steps,
                const std::function<double(int64_t step)>& examples_until);

/// A plan in the making: what an algorithm begins with, and what its steps make of it.
struct Forecast {
  int64_t steps = 0;
  /// How it takes charge. `initial_nnz` of the parameters is what they have before that.
  MaskSource source = MaskSource::Made;
  std::vector<PlannedParameter> parameters = {};
  /// Whether the counts are what will be: not where values or gradients decide on them.
  bool is_exact = true;

  /// Of all parameters, in their order.
  std::vector<Shape> shapes() const {
    std::vector<Shape> all;
    for (const PlannedParameter& parameter : parameters) all.push_back(parameter.shape);
    return all;
  }
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
  int64_t dead_rows = 0;     ///< rows (outputs) without a nonzero
  int64_t dead_columns = 0;  ///< columns (inputs) without a nonzero; of a convolution, channels
  std::string layout = {};   ///< how it is stored from now on
  /// ‖X(Ŵ − W)ᵀ‖² / ‖XWᵀ‖² over calibration inputs X, where one-shot pruning made the mask.
  std::optional<double> relative_error = {};
  std::vector<std::string> messages = {};  ///< what the user should know of it
};

}  // namespace lacuna
