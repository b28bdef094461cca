// How Adam treats weights that were grown while others were trained.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace lacuna {

/// A weight's moments start at zero when it grows, as those of all weights did at the first step.
/// Bias correction makes up for that by the number of updates. Counted for the parameter, as other
/// tools do, it makes up for nothing where that number is large: a grown weight's first steps are
/// up to (1 − β₁) / √(1 − β₂) times too large, 3.2 times (at their most 6.6 times) with the usual
/// betas.
struct RegrownWeights {
  /// Whose updates bias correction counts: the parameter's, or each weight's since it was grown.
  enum class Age { Shared, Own };
  Age age = Age::Shared;
  /// Updates over which the step of a grown weight rises: its i-th is multiplied by i / warmup
  /// while that is below 1. From 0 to 65535. Weights that were never grown have none.
  int64_t warmup = 0;

  bool keeps_ages() const { return age == Age::Own || warmup > 0; }
};

/// Adam's factors by the age of a weight. From `size()` on, an age makes no difference: both
/// corrections 1 − βᵗ are 1 in float32 (β₂ = 0.999: from 17321 on), or at 65535, the largest age
/// kept, where at the largest betas allowed they are 0.9986, and the warmup is over.
class AgeTables {
 public:
  AgeTables() = default;
  /// *Errors:* OptionError on a warmup out of range, and on betas above 0.9999 with ages of their
  /// own.
  AgeTables(const RegrownWeights& options, const std::array<double, 2>& betas);

  /// The largest age kept; 0: none is.
  int64_t size() const { return static_cast<int64_t>(step_scales.size()); }

  std::vector<float> step_scales;  ///< by age: warmup, and 1 / (1 − β₁ᵗ) with ages of their own
  std::vector<float> root_scales;  ///< by age: 1 / √(1 − β₂ᵗ); empty where ages are shared
};

}  // namespace lacuna
