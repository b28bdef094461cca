#include "lacuna/framework/onnx/layer_forms.hpp"

#include <map>
#include <typeindex>
#include <utility>

#include "lacuna/framework/nn/layer_registry.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/builtin.hpp"
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

// A group's, by its class, or that of the layer's type: as registered, or built in where no program
// has registered layers. Empty where it has none.
OnnxForm form_of(const Module& layer) {
  static const std::map<std::type_index, OnnxForm> groups = {
      {typeid(Sequential), onnx_form(write_sequential)},
      {typeid(Residual), onnx_form(write_residual)},
      {typeid(Parallel), onnx_form(write_parallel)}};
  if (const auto group = groups.find(typeid(layer)); group != groups.end()) return group->second;
  static const LayerRegistry built_in = [] {
    LayerRegistry layers("layer");
    register_layers(layers);
    return layers;
  }();
  for (const LayerRegistry* registry : {&std::as_const(layer_registry()), &built_in}) {
    const auto type = registry->entries().find(layer.type());
    if (type != registry->entries().end()) return type->second.make.onnx;
  }
  return {};
}

}  // namespace

std::string write_layer(OnnxGraph& graph, const Module& layer, const std::string& input,
                        const Shape& example) {
  if (layer.has_input_transforms() || layer.has_output_transforms()) {
    refuse_onnx(layer,
                "its inputs or outputs are sparsified, and ONNX has no operator for this; export a "
                "model without `sparsifiers` of activations");
  }
  const OnnxForm form = form_of(layer);
  if (form == nullptr) {
    refuse_onnx(layer,
                "its type cannot be expressed in ONNX; build the model from other layers, or "
                "export its weights with --format safetensors");
  }
  graph.begin_layer(layer.path());
  return form(graph, layer, input, example);
}

}  // namespace lacuna
