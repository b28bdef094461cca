// The options that sparsity algorithms have in common, and the resulting numbers of nonzeros.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/config/schedule.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/sparsity/masks/mask_init.h"
#include "lacuna/sparsity/options/distribution.h"
#include "lacuna/sparsity/options/filter.h"
#include "lacuna/sparsity/options/layout_option.h"
#include "lacuna/sparsity/options/score_groups.h"
#include "lacuna/sparsity/options/target.h"

namespace lacuna {

/// The source of an algorithm's first masks: the init method, or the existing masks of the
/// parameters.
enum class FirstMask { Chosen, Present };

/// The options of all algorithms.
struct SparsityOptions {
  /// Fraction of zeros in [0, 1], constant or a schedule over the steps (or a density, a fan-in).
  SparsityTarget sparsity = {};
  /// How the first mask is made; random by default.
  InitMethod init_method = {};
  /// Which parameters; weights by default.
  ParameterFilter param_filter = {};
  /// Separate competitions within a tensor; none by default.
  ScoreGroups groups = {};
  /// The shape that masks have: N:M, blocks; any by default. With N:M the sparsity is omitted, or
  /// equals 1 − N/M, or is a schedule that ends there.
  PatternShape pattern = {};
  /// How the sparsity is distributed over the parameters; by default each has the same.
  Distribution distribution = {};
  /// How the parameters are stored; by default in the fastest layout for each.
  LayoutOption layout = {};
  /// Seed of random masks and random growth.
  uint64_t seed = 0;

  // For algorithms whose masks change; the others refuse them.

  /// When masks change; every step by default.
  UpdateSchedule update = {};
  /// Fraction of the nonzeros dropped at an update, in [0, 1]; default 0.3 in algorithms that drop.
  std::optional<Schedule> drop_fraction = {};
  /// Whether an algorithm that drops and grows first gives new nonzeros to rows and columns that
  /// have lost all of theirs, so that no neuron stays disconnected. Off by default, as in the
  /// papers; for layers with few nonzeros per row.
  bool keep_alive = false;

  /// From a map's keys sparsity | schedule | density | fan_in, init_method, param_filter,
  /// balance_in_groups, balance_out_groups, pattern, distribution, layout: all except those of
  /// changing masks. *Errors:* ConfigError. Algorithms that keep existing masks do not have the key
  /// `init_method`.
  static SparsityOptions from_config(const Config& entry, uint64_t seed,
                                     FirstMask first = FirstMask::Chosen);

  /// These options, with the sparsity that an N:M pattern implies filled in. *Errors:* ConfigError
  /// if the pattern cannot be combined with the others.
  SparsityOptions checked() const;
  /// *Errors:* ConfigError, which begins with `type`, if options of changing masks are given.
  void require_no_updates(std::string_view type) const;

  /// Target nonzeros for parameters of these shapes, in whole units and whole groups. *Errors:*
  /// ConfigError if the pattern cannot be as sparse.
  std::vector<int64_t> targets_at(int64_t step, int64_t updates,
                                  const std::vector<Shape>& shapes) const;
};

/// The options of an algorithm whose masks change.
using DynamicOptions = SparsityOptions;

}  // namespace lacuna
