// DensityLimits: the densities below which compressed layouts are faster, for each weight.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {

/// The weight, layout and lifetime of a limit.
struct DensityLimitKey {
  std::string parameter;       ///< its full name
  std::string layout = "csr";  ///< the compressed alternative to masked
  PatternLifetime lifetime = PatternLifetime::ManySteps;

  /// "fc1.weight"; for layouts other than csr "fc1.weight in nm 2:4"; for patterns for one step
  /// "fc1.weight in csr, for one step": the keys of `csr_up_to` in configurations.
  std::string to_string() const;
  static DensityLimitKey parse(std::string_view text);
  friend bool operator==(const DensityLimitKey&, const DensityLimitKey&) = default;
};

/// In alphabetical order of their text.
struct DensityLimitOrder {
  bool operator()(const DensityLimitKey& a, const DensityLimitKey& b) const {
    return a.to_string() < b.to_string();
  }
};

using DensityLimits = std::map<DensityLimitKey, double, DensityLimitOrder>;

}  // namespace lacuna
