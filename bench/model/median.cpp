#include "model/median.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace lacuna::bench {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::map<std::string, double> median_ms_by_kind(
    const std::vector<std::map<std::string, double>>& passes) {
  std::map<std::string, std::vector<double>> samples;
  for (size_t pass = passes.size() > 1 ? 1 : 0; pass < passes.size(); ++pass) {
    for (const auto& [kind, seconds] : passes[pass]) samples[kind].push_back(1e3 * seconds);
  }
  std::map<std::string, double> medians;
  for (auto& [kind, values] : samples) medians[kind] = median(std::move(values));
  return medians;
}

}  // namespace lacuna::bench
