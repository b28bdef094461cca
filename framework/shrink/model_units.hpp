// ModelUnits: the units of a model (neurons, channels, attention heads, feed-forward units), found
// by a walk over its layers, and the groups of units that its layers share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/unit_graph.h"

namespace lacuna {

/// Units that compete with each other: those of layers whose outputs are added up, or of one layer.
struct UnitGroup {
  std::vector<std::string> layers;  ///< that give them, in the model's order
  std::vector<int32_t> units;
  std::string why_fixed;  ///< why none of them can be removed; empty where some can

  /// "fc1", "conv1 and 3 more".
  std::string name() const;
};

/// Units are numbered from 0 in the order of the layers that give them. In all members of
/// UnitGraph's types they have these numbers, united ones the same.
struct ModelUnits {
  /// *Errors:* ShapeError where the model does not take such examples.
  ModelUnits(const Module& model, const Shape& example);

  int64_t count = 0;
  std::vector<std::string> why_fixed;  ///< of each unit; empty where it can be removed
  std::vector<UnitGroup> groups;
  std::vector<int32_t> group_of;  ///< of each unit; −1: none, as of the model's input
  std::vector<UnitGraph::Slice> slices;
  std::vector<UnitGraph::BufferSlice> buffers;
  std::vector<UnitGraph::Size> sizes;
};

/// Which units stay, one for each: 0 or 1.
using KeptUnits = std::vector<uint8_t>;

/// The indices along a dimension whose units stay, ascending.
std::vector<int64_t> kept_indices(const UnitGraph::Units& units, const KeptUnits& kept);

}  // namespace lacuna
