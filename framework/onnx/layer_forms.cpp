#include "lacuna/framework/onnx/layer_forms.hpp"

#include <fmt/core.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/parallel.h"
#include "lacuna/layers/residual.h"

namespace lacuna {
namespace {

std::string write_chain(OnnxGraph& graph, const Chain& chain, std::string value, Shape example) {
  for (const Module* layer : chain.modules()) {
    value = write_layer(graph, *layer, value, example);
    example = layer->output_shape(example);
  }
  return value;
}

std::string write_sequential(OnnxGraph& graph, const Sequential& layer, const std::string& input,
                             const Shape& example) {
  return write_chain(graph, layer.chain(), input, example);
}

std::string write_residual(OnnxGraph& graph, const Residual& layer, const std::string& input,
                           const Shape& example) {
  const std::string y = write_chain(graph, layer.layers(), input, example);
  const std::string shortcut = write_chain(graph, layer.shortcut(), input, example);
  graph.begin_layer(layer.path());
  return graph.add("Add", {y, shortcut});
}

std::string write_parallel(OnnxGraph& graph, const Parallel& layer, const std::string& input,
                           const Shape& example) {
  OnnxGraph::Names branches;
  for (const auto& [name, child] : layer.children()) {
    branches.push_back(write_layer(graph, *child, input, example));
  }
  graph.begin_layer(layer.path());
  const bool is_image = layer.output_shape(example).rank() == 3;
  return graph.add("Concat", branches, {{"axis", int64_t{is_image ? 1 : -1}}});
}

const LayerForms& forms() {
  static const LayerForms all = [] {
    LayerForms made;
    add_form<Sequential>(made, write_sequential);
    add_form<Residual>(made, write_residual);
    add_form<Parallel>(made, write_parallel);
    add_plain_forms(made);
    add_image_forms(made);
    add_token_forms(made);
    return made;
  }();
  return all;
}

}  // namespace

ParameterPtr own_parameter(const Module& layer, std::string_view name) {
  for (const auto& [own, parameter] : layer.own_parameters()) {
    if (own == name) return parameter;
  }
  return nullptr;
}

void refuse_layer(const Module& layer, const std::string& why) {
  throw Error(fmt::format("layer '{}' ({}) cannot be exported to ONNX: {}", layer.path(),
                          layer.type(), why));
}

std::string write_layer(OnnxGraph& graph, const Module& layer, const std::string& input,
                        const Shape& example) {
  if (layer.has_input_transforms() || layer.has_output_transforms()) {
    refuse_layer(layer,
                 "what goes in or comes out is sparsified, for which ONNX has no operator; "
                 "export a model without `sparsifiers` of activations");
  }
  const Module& exact = layer;
  const auto form = forms().find(typeid(exact));
  if (form == forms().end()) {
    refuse_layer(layer,
                 "it is no built-in layer; put the model together of built-in ones, or "
                 "export its weights with --format safetensors");
  }
  graph.begin_layer(layer.path());
  return form->second(graph, layer, input, example);
}

}  // namespace lacuna
