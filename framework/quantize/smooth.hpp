// Smoothing: the range of activations moved into weights.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/quantize/int8_candidates.hpp"

namespace lacuna {

/// Divides each output j of a layer_norm or rms_norm by s_j = max |x_j|^α / max |w_:j|^(1 − α), and
/// multiplies column j of the linear layers that alone are given it by s_j, so that what the model
/// computes differs by rounding alone while its activations have fewer outliers. Returns a message
/// for the candidates that no norm precedes, which stay as they are. *Requires* a model in
/// evaluation mode. *Errors:* ConfigError that names the candidates where a norm precedes none.
/// *Cost:* a run on the calibration examples. *Source:* Xiao et al., 2023 (arXiv:2211.10438),
/// eq. 4.
std::vector<std::string> smooth_model(Module& model, const std::vector<Int8Candidate>& candidates,
                                      double alpha, const CalibrationRun& run);

}  // namespace lacuna
