// What is to be removed of a model: the section `shrink`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/sparsity/calibration/calibration.h"

namespace lacuna {

/// By what units are chosen.
enum class ShrinkMethod {
  Magnitude,  ///< the squares of their weights
  Saliency,   ///< what their removal changes of the loss, to first order
  Error,      ///< what their removal changes of the outputs of the layers that take them
  Dead,       ///< that they have no nonzero that comes in, or none that goes out
};
const std::vector<std::string>& shrink_methods();
const char* to_string(ShrinkMethod method);
/// The method that a key of a section names; magnitude where it is missing. *Errors:* ConfigError.
ShrinkMethod read_shrink_method(const Config& section, const char* key);

/// How groups of units share what is removed.
enum class ShrinkShares {
  Uniform,  ///< as large a part of each
  Global,   ///< the smallest scores of all
};

/// What is to be left, as a part of what there was.
enum class ShrinkBudget { Flops, Parameters, Time };
const char* to_string(ShrinkBudget budget);

/// Multiples at which the counts of units are kept.
struct Rounding {
  int64_t multiple = 1;
  /// Each group has a multiple of its own, `multiple` at most: 16 for channels of convolutions, in
  /// whose blocks dense convolutions are computed; 8 for groups of at most 16 channels, and for
  /// units of linear layers.
  bool is_auto = false;
  /// With `auto`: of each unit, what its multiple is a multiple of, as a weight's pattern asks for.
  /// Empty: 1 for all.
  std::vector<int64_t> of_patterns = {};

  /// The largest that `auto` tries, and the smaller ones where a budget is not met with these.
  static constexpr int64_t kMostOfAuto = 16;

  /// `auto`, with its largest multiples.
  static Rounding automatic() { return {.multiple = kMostOfAuto, .is_auto = true}; }
  /// A positive integer, or auto. *Errors:* ConfigError.
  static Rounding from_config(const Config& round_to);
};

struct ShrinkOptions {
  ShrinkMethod method = ShrinkMethod::Magnitude;
  ShrinkBudget budget = ShrinkBudget::Flops;
  double to = 1.0;  ///< in (0, 1]
  ShrinkShares shares = ShrinkShares::Uniform;
  double keep_at_least = 0.1;         ///< of each layer, in (0, 1]; one unit stays anyway
  std::vector<std::string> layers{};  ///< globs over paths of layers; empty: all
  Rounding round_to = {};             ///< multiples that the counts of units are kept at
  bool least_squares = true;          ///< of Error: the layers that take units are refitted
  CalibrationOptions calibration = {};

  /// From a map with `method`, `to` (a map of flops, parameters or time), `shares`,
  /// `keep_at_least`, `round_to` (these four not of dead), `layers`, `calibration` and, of error,
  /// `least_squares`. *Errors:* ConfigError.
  static ShrinkOptions from_config(const Config& section);
};

/// What is left, of a map of one of flops, parameters and time. *Errors:* ConfigError.
struct ShrinkTarget {
  ShrinkBudget budget = ShrinkBudget::Flops;
  double left = 1.0;  ///< in (0, 1]
};
ShrinkTarget read_shrink_target(const Config& to);
/// The keys `shares`, `keep_at_least` and `layers`, into options whose method is known.
void read_unit_choice(const Config& section, ShrinkOptions& options);

}  // namespace lacuna
