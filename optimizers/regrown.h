// How Adam treats weights that were grown during training.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace lacuna {

/// A weight's moments start at zero when it grows, as those of all weights did at the first step.
/// Bias correction compensates for this, by the number of updates. If updates are counted per
/// parameter, as in other tools, a large number of updates leaves no correction: the step of a
/// weight that was grown t updates ago is then up to (1 − β₁ᵗ) / √(1 − β₂ᵗ) times too large; with
/// the usual betas 3.2 times at first, and 6.6 times after twelve updates.
struct RegrownWeights {
  /// The updates that bias correction counts: the parameter's, or each weight's since it was grown.
  enum class Age { Shared, Own };
  Age age = Age::Shared;
  /// Updates over which the step of a grown weight rises: the i-th is multiplied by i / warmup
  /// while that is below 1. From 0 to 65535. It does not affect weights that were never grown.
  int64_t warmup = 0;

  bool keeps_ages() const { return age == Age::Own || warmup > 0; }
};

/// Adam's factors by the age of a weight. From `size()` on, the age makes no difference: either
/// both corrections 1 − βᵗ are 1 in float32 (for β₂ = 0.999 from 17321 on), or the age is 65535,
/// the largest one, where they are 0.9986 for the largest valid betas. The warmup is over.
class AgeTables {
 public:
  AgeTables() = default;
  /// *Errors:* OptionError if the warmup is out of range, or if a beta is above 0.9999 with own
  /// ages.
  AgeTables(const RegrownWeights& options, const std::array<double, 2>& betas);

  /// The largest age that is kept; 0: no ages are kept.
  int64_t size() const { return static_cast<int64_t>(step_scales.size()); }

  std::vector<float> step_scales;  ///< by age: warmup, and 1 / (1 − β₁ᵗ) with own ages
  std::vector<float> root_scales;  ///< by age: 1 / √(1 − β₂ᵗ); empty with shared ages
};

}  // namespace lacuna
