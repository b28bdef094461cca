// The float32 model of a quantized run.
#pragma once

#include <memory>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/nn/sequential.h"

namespace lacuna {

/// As rebuild_model, whose products are in int8 where the state is a quantized model's, but in
/// float32 in any case.
std::unique_ptr<Sequential> rebuild_float32_model(const Config& config, const StateDict& state,
                                                  const Shape& example_shape);

}  // namespace lacuna
