// Counts of units as multiples of what kernels compute at once: an order of removal in blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/shrink/model_units.hpp"
#include "lacuna/framework/shrink/shrink_options.hpp"

namespace lacuna {

/// The multiple of each unit's group. It is 1 for attention heads, whatever `rounding` says, unless
/// a pattern asks for more.
std::vector<int64_t> multiples_of_units(const ModelUnits& units, const Rounding& rounding);

/// The pattern of a parameter's mask.
using PatternOf = std::function<PatternShape(const Parameter& parameter)>;

/// For each unit, the multiple at which its group must be kept so that patterns still fit the
/// weights: M of N:M, a block's rows or columns, or rows that share a pattern. Empty: 1 for all.
std::vector<int64_t> multiples_of_patterns(const ModelUnits& units, const PatternOf& pattern_of);

/// An order of removal, cut into blocks. Units that lie along the same dimensions of the same
/// parameters form a class. The units of a class are removed in the order that was given, in blocks
/// whose removal leaves a multiple of them; a block has the place of its middle unit. What is left
/// of a class after its last whole block stays. With multiples of 1, each block is one unit.
std::vector<std::vector<int32_t>> blocks_of_order(const ModelUnits& units,
                                                  std::span<const int32_t> order,
                                                  const std::vector<int64_t>& multiples);

/// A part of what there was, for units that stay.
using PartLeft = std::function<double(const KeptUnits& kept)>;

/// What is tried to come close to a budget from below.
struct BudgetSearch {
  double target = 1.0;  ///< of `part`
  PartLeft part = {};
  int most_refills = 200;  ///< further calls of `part`, for blocks that fit within the budget again
};

/// The units that stay if blocks are removed from the front until the part is at most the target.
/// Because blocks are coarse, those that fit within it again are then put back, the last first.
/// Nothing if the target is not met without all blocks.
std::optional<KeptUnits> keep_within(const ModelUnits& units,
                                     std::span<const std::vector<int32_t>> blocks,
                                     const BudgetSearch& search);

/// What is left if all blocks are removed.
KeptUnits without_all(const ModelUnits& units, std::span<const std::vector<int32_t>> blocks);

/// The blocks of removal_blocks, for some multiples.
using BlocksFor =
    std::function<std::vector<std::vector<int32_t>>(const std::vector<int64_t>& multiples)>;

/// Units that stay, and the multiples that led to them.
struct RoundedChoice {
  std::optional<KeptUnits> kept = {};  ///< nothing: the target cannot be met
  Rounding rounding;
};

/// keep_within for rounded blocks. With `auto`, multiples are halved until the target is met and
/// what is left is at least `least_use` of it, and the choice that comes closest is taken.
RoundedChoice choose_rounded(const ModelUnits& units, const Rounding& rounding,
                             const BlocksFor& blocks, const BudgetSearch& search, double least_use);

}  // namespace lacuna
