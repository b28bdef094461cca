// Which layers of a model are quantized, and why others are not.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/nn/affine_layer.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/quantize/quantize_options.hpp"

namespace lacuna {

/// A weight that is multiplied with, in the order of the model.
struct Int8Candidate {
  ParameterPtr weight;
  /// A Linear or a Conv2d that can be quantized; null: another layer.
  AffineLayer* layer = nullptr;
  std::string reason = {};  ///< why it stays float32; empty: it is quantized
};

/// Why a layer has no product in int8, or why its weights alone cannot be quantized (When::None);
/// empty: it has.
std::string reason_against_int8(const Module& layer, QuantizeOptions::When when);

/// All weights of linear layers and convolutions. *Errors:* ConfigError for a glob that matches no
/// such weight, or one that has no product in int8, and where nothing is left to quantize.
std::vector<Int8Candidate> int8_candidates(Module& model, const QuantizeOptions& options);

}  // namespace lacuna
