// The options that sparsity algorithms have in common, and the nonzeros that they ask for.
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

/// Where an algorithm's first masks come from: the init method chooses them, or they are those that
/// the parameters have.
enum class FirstMask { Chosen, Present };

/// What algorithms have in common.
struct SparsityOptions {
  /// Fraction of zeros in [0, 1], constant or a schedule over the steps (or a density, a fan-in).
  SparsityTarget sparsity = {};
  /// How the first mask is made; random by default.
  InitMethod init_method = {};
  /// Which parameters; weights by default.
  ParameterFilter param_filter = {};
  /// Separate competitions within a tensor; none by default.
  ScoreGroups groups = {};
  /// The shape that masks have: N:M, blocks; any by default. With N:M the sparsity is left out, or
  /// equals 1 − N/M, or is a schedule that ends there.
  PatternShape pattern = {};
  /// How the sparsity is shared out among the parameters; each the same by default.
  Distribution distribution = {};
  /// How the parameters are stored; the fastest way for each by default.
  LayoutOption layout = {};
  /// Of random masks and random growth.
  uint64_t seed = 0;

  // For algorithms whose masks change; the others refuse them.

  /// When masks change; every step by default.
  UpdateSchedule update = {};
  /// Fraction of the nonzeros dropped at an update, in [0, 1]; 0.3 where an algorithm drops and it
  /// is absent.
  std::optional<Schedule> drop_fraction = {};
  /// Whether an algorithm that drops and grows gives rows and columns that have lost all their
  /// nonzeros new ones first, so that no neuron stays cut off. Off by default, as in the papers;
  /// for layers with a few nonzeros a row.
  bool keep_alive = false;

  /// From a map's keys sparsity | schedule | density | fan_in, init_method, param_filter,
  /// balance_in_groups, balance_out_groups, pattern, distribution, layout: all but those of
  /// changing masks. *Errors:* ConfigError. `init_method` is no key of an algorithm whose masks are
  /// those that there are.
  static SparsityOptions from_config(const Config& entry, uint64_t seed,
                                     FirstMask first = FirstMask::Chosen);

  /// These options, with the sparsity that an N:M pattern implies filled in. *Errors:* ConfigError
  /// when the pattern does not go with the others.
  SparsityOptions checked() const;
  /// *Errors:* ConfigError, which begins with `type`, when options of changing masks are given.
  void require_no_updates(std::string_view type) const;

  /// Nonzeros aimed at for parameters of these shapes, in whole units and whole groups.
  /// *Errors:* ConfigError when the pattern cannot be as sparse.
  std::vector<int64_t> targets_at(int64_t step, int64_t updates,
                                  const std::vector<Shape>& shapes) const;
};

/// The options of an algorithm whose masks change.
using DynamicOptions = SparsityOptions;

}  // namespace lacuna
