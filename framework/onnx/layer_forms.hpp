// Models as graphs of ONNX operators.
#pragma once

#include <string>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/nn/onnx_graph.h"

namespace lacuna {

/// Writes a layer by its form in the registry, or a group of them. *Errors:* Error that names a
/// layer that has no form.
std::string write_layer(OnnxGraph& graph, const Module& layer, const std::string& input,
                        const Shape& example);

}  // namespace lacuna
