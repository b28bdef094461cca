// QuantizeOptions: the section `quantize` of a configuration.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/sparsity/calibration/calibration.h"
#include "lacuna/sparsity/one_shot/weight_grid.hpp"

namespace lacuna {

struct QuantizeOptions {
  /// Nearest rounds each weight by itself. Gptq lets the columns that follow make up for what
  /// rounding changes, by the layer's inputs (OneShotOptions::grid_scales).
  enum class Algorithm { Nearest, Gptq };
  /// Activations have one grid for all examples, or each example its own.
  enum class When { Static, Dynamic };
  /// What a static grid spans: all values that were seen, or all but a few at its ends.
  enum class Observer { MinMax, Percentile };

  Algorithm algorithm = Algorithm::Gptq;
  GridClip clip = GridClip::Mse;
  When when = When::Static;
  Observer observer = Observer::Percentile;
  double percentile = 99.99;
  /// Globs of weights; empty: those of all linear layers but the first and the last layer.
  std::vector<std::string> param_filter{};
  CalibrationOptions calibration{};
  /// Examples of a calibration, at least.
  static constexpr int64_t kFewestExamples = 8;

  bool needs_examples() const { return algorithm == Algorithm::Gptq || when == When::Static; }

  /// Writes defaults into the section. *Errors:* ConfigError.
  static QuantizeOptions from_config(const Config& section);
};

const char* to_string(QuantizeOptions::Algorithm algorithm);  ///< "nearest", "gptq"

}  // namespace lacuna
