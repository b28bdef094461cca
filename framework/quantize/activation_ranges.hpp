// What the activations of layers span on calibration examples.
#pragma once

#include <vector>

#include "lacuna/framework/kernels/int8/int8.hpp"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/quantize/quantize_options.hpp"

namespace lacuna {

/// The grid of one weight's inputs.
struct ActivationRange {
  Int8Grid grid = {};
  double clipped = 0.0;  ///< fraction of the values outside of it
};

/// The grids of the inputs of `weights`, in their order: min_max spans all values; percentile cuts
/// (100 − percentile) % of them, half at each end, or all at the upper end where none is negative,
/// by a histogram of 8192 bins; mse reaches as far as loses the fewest squares of the bins' middles
/// by rounding and clipping, of 80 reaches at each end. *Requires* a model in evaluation mode, and
/// static activations. *Errors:* DataError that names a weight whose inputs are NaN, infinite or
/// all the same; StateError for one that the model never multiplies with. *Cost:* two runs.
std::vector<ActivationRange> activation_ranges(Module& model, const CalibrationRun& run,
                                               const std::vector<ParameterPtr>& weights,
                                               const QuantizeOptions& options);

}  // namespace lacuna
