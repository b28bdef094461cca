// Quantizing a trained model: its weights by rounding or GPTQ, its activations by calibration.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/quantize/int8_candidates.hpp"
#include "lacuna/framework/quantize/quantized_layer.hpp"

namespace lacuna {

/// The quantized layers of a model, and remarks that the user should know.
struct QuantizedModel {
  std::vector<QuantizedLayer> layers;
  std::vector<std::string> messages;
};

/// A weight whose grids are known: of a sweep that pruned it, or of a training on them.
struct KnownGrid {
  QuantizedLayer layer;
  Tensor weight;  ///< as the parameter was when they were found, dense
};

/// A weight on these scales: each value the nearest on its row's grid.
KnownGrid known_grid(const Parameter& parameter, std::vector<float> scales,
                     std::optional<Int8Grid> input);

/// Quantizes the candidates that have no reason against it, in the order of the forward pass: each
/// weight by the inputs that the quantized ones before it give, on the mask that it has. *Effect:*
/// the model's weights become multiples of their scales; activations stay float32. *Requires* a
/// model in evaluation mode. Weights of `known` take their values from there, by name; what was
/// folded into their rows since then goes into the scales. `run`: null where
/// options.needs_examples() is false. *Errors:* DataError, as prune_one_shot and activation_ranges.
/// *Cost:* for gptq a forward pass for each layer, and in³ and out · in² operations of it; two
/// forward passes for static activations.
QuantizedModel quantize_model(Module& model, const std::vector<Int8Candidate>& candidates,
                              const QuantizeOptions& options, const CalibrationRun& run,
                              const std::vector<KnownGrid>& known = {});

}  // namespace lacuna
