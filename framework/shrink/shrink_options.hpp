// What is to be removed of a model: the section `shrink`.
#pragma once

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

/// How groups of units share what is removed.
enum class ShrinkShares {
  Uniform,  ///< as large a part of each
  Global,   ///< the smallest scores of all
};

/// What is to be left, as a part of what there was.
enum class ShrinkBudget { Flops, Parameters, Time };
const char* to_string(ShrinkBudget budget);

struct ShrinkOptions {
  ShrinkMethod method = ShrinkMethod::Magnitude;
  ShrinkBudget budget = ShrinkBudget::Flops;
  double to = 1.0;  ///< in (0, 1]
  ShrinkShares shares = ShrinkShares::Uniform;
  double keep_at_least = 0.1;         ///< of each layer, in (0, 1]; one unit stays anyway
  std::vector<std::string> layers{};  ///< globs over paths of layers; empty: all
  bool least_squares = true;          ///< of Error: the layers that take units are fitted anew
  CalibrationOptions calibration = {};

  /// From a map with `method`, `to` (a map of flops, parameters or time), `shares`,
  /// `keep_at_least`, `layers`, `calibration` and, of error, `least_squares`. *Errors:*
  /// ConfigError.
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
