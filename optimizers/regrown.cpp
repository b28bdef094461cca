#include "lacuna/optimizers/regrown.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "lacuna/framework/config/config.h"
#include "lacuna/optimizers/optimizer.h"

namespace lacuna {
namespace {

// The first t at which 1 − betaᵗ is 1 in float32.
int64_t corrected_from(double beta) {
  int64_t t = 1;
  if (beta > 0.0) t = std::max<int64_t>(t, static_cast<int64_t>(-25.0 / std::log2(beta)));
  while (static_cast<float>(1.0 - std::pow(beta, static_cast<double>(t))) != 1.0f) ++t;
  return t;
}

}  // namespace

AgeTables::AgeTables(const RegrownWeights& options, const std::array<double, 2>& betas) {
  constexpr double kMostBeta = 0.9999;
  if (options.warmup < 0 || options.warmup > WeightAges::kMost) {
    throw OptionError("regrown.warmup", fmt::format("expected from 0 to {} updates, found {}",
                                                    WeightAges::kMost, options.warmup));
  }
  if (!options.keeps_ages()) return;
  const bool is_own = options.age == RegrownWeights::Age::Own;
  int64_t most = options.warmup;
  if (is_own) {
    for (const double beta : betas) {
      if (beta > kMostBeta) {
        throw OptionError("betas", "with regrown.age own, expected numbers of at most " +
                                       Config(kMostBeta).text() + ", found " + Config(beta).text());
      }
      most = std::max(most, corrected_from(beta));
    }
  }
  most = std::min(most, WeightAges::kMost);
  for (int64_t age = 0; age < most; ++age) {
    const auto t = static_cast<double>(std::max<int64_t>(age, 1));
    const double ramp =
        options.warmup > 0 ? std::min(1.0, t / static_cast<double>(options.warmup)) : 1.0;
    const double correction = is_own ? 1.0 - std::pow(betas[0], t) : 1.0;
    step_scales.push_back(static_cast<float>(ramp / correction));
    if (is_own) {
      root_scales.push_back(static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(betas[1], t))));
    }
  }
}

}  // namespace lacuna
