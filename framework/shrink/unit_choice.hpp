// Which units are removed: an order of removal by scores, cut off where a budget is met.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/shrink/model_units.hpp"
#include "lacuna/framework/shrink/shrink_options.hpp"

namespace lacuna {

/// What a model costs without some units: nonzeros count, where weights have masks.
struct UnitsCost {
  double flops = 0.0;       ///< of a forward pass of one example (nn/module_rows.h)
  double parameters = 0.0;  ///< nonzeros of all parameters
};
UnitsCost cost_of(const Module& model, std::span<const ModuleRow> rows, const ModelUnits& units,
                  const KeptUnits& kept);
/// The same, as if all weights were dense.
UnitsCost dense_cost_of(const Module& model, std::span<const ModuleRow> rows,
                        const ModelUnits& units, const KeptUnits& kept);

/// Units of the layers that `options.layers` names which may be removed, all of them. *Errors:*
/// ConfigError as for removal_order on what `options.layers` names.
std::vector<int32_t> removable_units(const ModelUnits& units, const ShrinkOptions& options);

/// Units that may be removed, in the order in which they are: of Uniform shares by their rank in
/// their group, of Global ones by score, where that is a loss divided by what a unit costs. Each
/// layer keeps `keep_at_least` of its units and one, whatever is taken of the order. *Errors:*
/// ConfigError, which begins with what `options.layers` names: globs that match no layer of units,
/// and layers whose units cannot be removed, with the reason; and where there is none at all.
std::vector<int32_t> removal_order(const ModelUnits& units, std::span<const ModuleRow> rows,
                                   const std::vector<double>& scores, const ShrinkOptions& options);

/// The same in blocks of units, which leave multiples of them (unit_rounding.hpp): none that would
/// leave a layer less than what it keeps. May be empty. *Errors:* those of `options.layers`.
std::vector<std::vector<int32_t>> removal_blocks(const ModelUnits& units,
                                                 std::span<const ModuleRow> rows,
                                                 const std::vector<double>& scores,
                                                 const ShrinkOptions& options,
                                                 const std::vector<int64_t>& multiples);

/// All units but the first `count` of the order.
KeptUnits without_first(const ModelUnits& units, std::span<const int32_t> order, size_t count);

/// The smallest number of units, from the front of an order, without which a cost is at most
/// `target`; the whole order costs more: nothing. `cost` falls with the number, more or less.
std::optional<size_t> count_within(size_t most, double target,
                                   const std::function<double(size_t count)>& cost);

}  // namespace lacuna
