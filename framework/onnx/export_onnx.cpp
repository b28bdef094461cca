#include "lacuna/framework/onnx/export_onnx.hpp"

#include <algorithm>
#include <vector>

#include "lacuna/framework/onnx/graph.hpp"
#include "lacuna/framework/onnx/layer_forms.hpp"
#include "lacuna/framework/onnx/model_file.hpp"
#include "lacuna/layers/tokens/attention.h"
#include "lacuna/layers/tokens/token_embedding.h"
#include "lacuna/layers/tokens/token_pooling.h"
#include "lacuna/layers/tokens/token_type_embedding.h"

namespace lacuna {
namespace {

constexpr const char* kBatch = "batch";
constexpr const char* kSequence = "sequence";

bool takes_tokens(const std::vector<Module*>& modules) {
  return std::any_of(modules.begin(), modules.end(), [](const Module* module) {
    return dynamic_cast<const TokenEmbedding*>(module) != nullptr;
  });
}

// The named inputs that layers ask for beside the tokens. Causal attention does without a mask:
// what pads a text comes after it.
std::vector<std::string> named_inputs_of(const std::vector<Module*>& modules) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return;
    names.push_back(name);
  };
  for (const Module* module : modules) {
    if (const auto* attention = dynamic_cast<const Attention*>(module)) {
      if (!attention->options().causal) add(attention->options().mask);
    } else if (const auto* pool = dynamic_cast<const MeanPool*>(module)) {
      add(pool->options().mask);
    } else if (const auto* selected = dynamic_cast<const SelectToken*>(module)) {
      if (selected->options().index < 0) add(selected->options().mask);
    } else if (const auto* types = dynamic_cast<const TokenTypeEmbedding*>(module)) {
      add(types->options().input);
    }
  }
  return names;
}

OnnxValue value(std::string name, const Shape& example) {
  OnnxValue made{.name = std::move(name), .dims = {kBatch}};
  for (int i = 0; i < example.rank(); ++i) made.dims.emplace_back(example[i]);
  return made;
}

OnnxValue token_value(const std::string& name) {
  return {.name = name, .is_integer = true, .dims = {kBatch, kSequence}};
}

// Before anything is made: values of a sparse weight are written as dense ones, which may be more
// than there is memory for.
void require_fits(const Module& model) {
  uint64_t bytes = 0;
  for (const ParameterPtr& parameter : model.parameters()) {
    bytes += static_cast<uint64_t>(parameter->numel()) * sizeof(float);
  }
  require_onnx_size(bytes);
}

}  // namespace

void export_onnx(Module& model, const Shape& example,
                 const std::map<std::string, std::string>& metadata, const std::string& path) {
  require_fits(model);
  const std::vector<Module*> modules = model.modules();
  const bool has_tokens = takes_tokens(modules);
  OnnxGraph graph;
  if (has_tokens) {
    graph.add_input(token_value("input_ids"));
    for (const std::string& name : named_inputs_of(modules)) graph.add_input(token_value(name));
  } else {
    graph.add_input(value("input", example));
  }
  const std::string input = graph.inputs().front().name;
  graph.name_output(write_layer(graph, model, input, example), "output");

  OnnxValue output = value("output", model.output_shape(example));
  if (has_tokens && output.dims.size() == 3) output.dims[1] = kSequence;
  graph.add_output(std::move(output));
  write_onnx_file(graph, metadata, path);
}

}  // namespace lacuna
