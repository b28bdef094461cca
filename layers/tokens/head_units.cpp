#include "lacuna/layers/tokens/head_units.hpp"

namespace lacuna {

UnitGraph::Units unite_heads(UnitGraph& graph, const Module& layer, const UnitGraph::Units& qkv,
                             int64_t heads, int64_t kv_heads) {
  const int64_t of_keys = kv_heads == 0 ? heads : kv_heads, times = heads / of_keys;
  const int64_t d = static_cast<int64_t>(qkv.size()) / (heads + 2 * of_keys);
  const auto first_of = [&](int64_t head) { return qkv[static_cast<size_t>(head * d)]; };
  UnitGraph::Units queries, keys;
  for (int64_t i = 0; i < static_cast<int64_t>(qkv.size()); ++i) {
    const int64_t head = i / d;  // of queries, then keys, then values
    const int64_t unit = head < heads ? head / times * times : (head - heads) % of_keys * times;
    graph.unite({first_of(unit)}, {qkv[static_cast<size_t>(i)]});
    if (i % d == 0 && head < heads) queries.push_back(qkv[static_cast<size_t>(i)]);
    if (i % d == 0 && head >= heads && head < heads + of_keys) {
      keys.push_back(qkv[static_cast<size_t>(i)]);
    }
  }
  graph.sets(layer, "heads", queries);
  if (kv_heads != 0) graph.sets(layer, "kv_heads", keys);
  return {qkv.begin(), qkv.begin() + static_cast<std::ptrdiff_t>(heads * d)};
}

}  // namespace lacuna
