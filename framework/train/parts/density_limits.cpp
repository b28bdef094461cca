#include "lacuna/framework/train/parts/density_limits.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "lacuna/framework/config/names.h"

namespace lacuna {

DensityLimits read_density_limits(const Config& config, const Module& model) {
  DensityLimits limits;
  const Config section = config.get("csr_up_to");
  if (section.is_null()) return limits;
  if (!section.is_map()) section.fail("a map from parameters to densities");
  std::vector<std::string> names;
  for (const ParameterPtr& parameter : model.parameters()) names.push_back(parameter->name());
  for (const auto& [text, value] : section.entries()) {
    const DensityLimitKey key = DensityLimitKey::parse(text);
    const std::string& name = key.parameter;
    if (std::ranges::find(names, name) == names.end()) {
      value.error("the model has no parameter '" + name + "'; " + suggest_name(name, names));
    }
    limits[key] = value.as<double>();
    if (!(limits[key] >= 0.0 && limits[key] <= 1.0)) value.fail("a density from 0 to 1");
  }
  return limits;
}

void write_density_limits(Config& config, const DensityLimits& limits) {
  config.erase("csr_up_to");
  if (limits.empty()) return;
  Config section = Config::map();
  for (const auto& [key, density] : limits) section.set(key.to_string(), density);
  section.mark_read();
  config.set("csr_up_to", section);
}

}  // namespace lacuna
