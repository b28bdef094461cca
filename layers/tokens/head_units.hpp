// The units of attention heads.
#pragma once

#include <cstdint>

#include "lacuna/framework/nn/unit_graph.h"

namespace lacuna {

/// Follows units through a layer that is given queries, keys and values side by side and works head
/// by head: each head of keys and values is a unit, with the heads of queries that use it. Sets the
/// layer's keys. *Returns* the units of the queries. `kv_heads` 0: as `heads`.
UnitGraph::Units unite_heads(UnitGraph& graph, const Module& layer, const UnitGraph::Units& qkv,
                             int64_t heads, int64_t kv_heads);

}  // namespace lacuna
