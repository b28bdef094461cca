// The ONNX operators that each built-in layer is written as.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <typeindex>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/onnx/graph.hpp"

namespace lacuna {

/// Writes a layer that is given the value `input`, of examples of that shape. *Returns* the value
/// that it gives.
using LayerForm = std::function<std::string(OnnxGraph& graph, const Module& layer,
                                            const std::string& input, const Shape& example)>;
using LayerForms = std::map<std::type_index, LayerForm>;

/// Adds the form of one class of layers.
template <class Layer, class Write>
void add_form(LayerForms& forms, Write write) {
  forms[typeid(Layer)] = [write](OnnxGraph& graph, const Module& layer, const std::string& input,
                                 const Shape& example) {
    return write(graph, static_cast<const Layer&>(layer), input, example);
  };
}

void add_plain_forms(LayerForms& forms);
void add_image_forms(LayerForms& forms);
void add_token_forms(LayerForms& forms);

/// A layer's own parameter of that name; null where it has none.
ParameterPtr own_parameter(const Module& layer, std::string_view name);

/// *Errors:* Error that names the layer, its type and what ONNX lacks.
[[noreturn]] void refuse_layer(const Module& layer, const std::string& why);

/// Writes a layer, or a group of them. *Errors:* Error that names a layer that has no form.
std::string write_layer(OnnxGraph& graph, const Module& layer, const std::string& input,
                        const Shape& example);

}  // namespace lacuna
