// The units of attention heads.
#pragma once

#include <cstdint>

#include "lacuna/framework/nn/unit_graph.h"

namespace lacuna {

/// Follows units through a layer that takes queries, keys and values side by side and works head by
/// head: a head of keys and values, with the query heads that use it, is one unit. Sets the layer's
/// keys. *Returns* the units of the queries. `kv_heads` 0: equal to `heads`.
UnitGraph::Units unite_heads(UnitGraph& graph, const Module& layer, const UnitGraph::Units& qkv,
                             int64_t heads, int64_t kv_heads);

}  // namespace lacuna
