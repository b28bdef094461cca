#include "model/kind_table.h"

#include <algorithm>

namespace lacuna::bench {

void KindTable::add(const std::string& contender, const MsByKind& ms, const MsByKind& bounds) {
  constexpr double kWorthAShare = 0.005;
  double largest = 0.0;
  for (const auto& [kind, of_kind] : ms) largest = std::max(largest, of_kind);
  const size_t columns = table_.columns.size();
  table_.columns.push_back(contender);
  table_.columns.push_back("bound");
  table_.columns.push_back("of bound");
  for (const auto& [kind, of_kind] : ms) {
    auto row = std::ranges::find_if(table_.rows, [&](const auto& r) { return r[0] == kind; });
    if (row == table_.rows.end()) row = table_.rows.insert(row, {kind});
    row->resize(columns);
    const auto bound = bounds.find(kind);
    row->push_back(fixed(of_kind, 2));
    const bool is_shown = bound != bounds.end() && of_kind > kWorthAShare * largest;
    row->push_back(is_shown ? fixed(bound->second, 2) : "");
    row->push_back(is_shown ? fixed(100.0 * bound->second / of_kind, 0) + " %" : "");
  }
  for (auto& row : table_.rows) row.resize(table_.columns.size());
}

Config to_json(const MsByKind& ms_by_kind) {
  Config map = Config::map();
  for (const auto& [kind, ms] : ms_by_kind) map.set(kind, ms);
  return map;
}

}  // namespace lacuna::bench
