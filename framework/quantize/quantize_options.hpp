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
  /// Qat trains with weights and activations on their grids (quantization_aware.hpp).
  enum class Algorithm { Nearest, Gptq, Qat };
  /// Activations have one grid for all examples, each example its own, or none: they stay float32,
  /// and only weights are rounded.
  enum class When { Static, Dynamic, None };
  /// What a static grid spans: all values that were seen, all but a few at its ends, or so many
  /// that the squares lost by rounding and clipping are fewest.
  enum class Observer { MinMax, Percentile, Mse };
  /// Of qat: scales are found, or found and then trained (learned_scales.hpp).
  enum class Scales { Observed, Learned };

  Algorithm algorithm = Algorithm::Gptq;
  GridClip clip = GridClip::Mse;
  When when = When::Static;
  Observer observer = Observer::Percentile;
  double percentile = 99.99;
  /// How much of the range of activations goes into the weights (smooth.hpp), from 0 to 1; 0: off.
  double smooth = 0.0;
  Scales scales = Scales::Observed;
  /// Of qat: epochs of a run before it begins, and after that until observed grids stay.
  double start_epoch = 0.0, freeze_after = 1.0;
  /// Globs of weights; empty: those of all linear layers but the first and the last layer.
  std::vector<std::string> param_filter{};
  CalibrationOptions calibration{};
  /// Examples of a calibration, at least.
  static constexpr int64_t kFewestExamples = 8;

  bool needs_examples() const {
    return algorithm == Algorithm::Gptq || when == When::Static || smooth > 0.0;
  }

  /// The calibration with all its numbers, where the training data has `there` examples and batches
  /// of `batch_size`. *Errors:* ConfigError if it needs more examples than there are, or has fewer
  /// than kFewestExamples.
  CalibrationOptions calibration_on(const Config& section, int64_t there, int64_t batch_size) const;

  /// Writes defaults into the section. *Errors:* ConfigError.
  static QuantizeOptions from_config(const Config& section);
};

const char* to_string(QuantizeOptions::Algorithm algorithm);  ///< "nearest", "gptq", "qat"

}  // namespace lacuna
