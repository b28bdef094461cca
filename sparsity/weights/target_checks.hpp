// What of a target can only be a mistake, found out before any training.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "lacuna/sparsity/options/target.h"
#include "lacuna/sparsity/weights/plan.h"
#include "lacuna/sparsity/weights/sparse_weight.h"

namespace lacuna {

/// *Errors:* ConfigError, which begins with `type`, when the target is a fan-in above the inputs
/// that a row of some parameter has: the parameter would stay dense, without a word.
void require_fan_in_fits(std::string_view type, const SparsityTarget& target,
                         const Forecast& forecast);

/// The value of a schedule at a step, in [0, 1]: rounding is cut off. *Errors:* ConfigError "rigl:
/// the drop_fraction is 1.5 at step 3, expected a fraction from 0 to 1"; NaN is no fraction, too.
float require_fraction(std::string_view type, std::string_view what, float value, int64_t step);
/// *Errors:* ConfigError when the schedule gives no fraction at that step.
void require_fraction(std::string_view type, const SparsityTarget& target, int64_t step,
                      int64_t updates);

/// For messages: "parameter 'fc1.weight' [300, 784] with 23520 nonzeros", those of its target.
std::string with_nonzeros(const SparseWeight& weight);
/// Before time is spent on masks, and on measuring layouts. *Errors:* MemoryError if the values of
/// a target's nonzeros alone need more memory than there is.
void require_values_fit(const std::deque<SparseWeight>& weights);

}  // namespace lacuna
