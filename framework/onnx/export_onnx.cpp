#include "lacuna/framework/onnx/export_onnx.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "lacuna/framework/nn/named_inputs.h"
#include "lacuna/framework/nn/onnx_graph.h"
#include "lacuna/framework/onnx/layer_forms.hpp"
#include "lacuna/framework/onnx/model_file.hpp"

namespace lacuna {
namespace {

constexpr const char* kBatch = "batch";
constexpr const char* kSequence = "sequence";

// The integers that layers ask for, and cannot do without, in the order of the layers.
std::vector<std::string> named_inputs_of(const std::vector<Module*>& modules) {
  std::vector<std::string> names;
  for (const Module* module : modules) {
    const auto* user = dynamic_cast<const NamedInputUser*>(module);
    if (user == nullptr) continue;
    const RequestedInput asked = user->requested_input();
    if (asked.name.empty() || !asked.is_needed) continue;
    if (std::ranges::find(names, asked.name) == names.end()) names.push_back(asked.name);
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

size_t export_onnx(Module& model, const Shape& example,
                   const std::map<std::string, std::string>& metadata, const std::string& path,
                   OnnxValues values, const std::vector<OnnxInt8Weight>& int8,
                   const CountSparse& before_writing) {
  require_fits(model);
  const std::vector<Module*> modules = model.modules();
  std::vector<std::string> names = named_inputs_of(modules);
  const bool has_tokens = std::erase(names, kInputIds) > 0;
  OnnxGraph graph;
  if (has_tokens) {
    graph.add_input(token_value(kInputIds));
    for (const std::string& name : names) graph.add_input(token_value(name));
  } else {
    graph.add_input(value("input", example));
  }
  const std::string input = graph.inputs().front().name;
  graph.name_output(write_layer(graph, model, input, example), "output");

  OnnxValue output = value("output", model.output_shape(example));
  if (has_tokens && output.dims.size() == 3) output.dims[1] = kSequence;
  graph.add_output(std::move(output));
  return write_onnx_file(graph, metadata, path, values, int8, before_writing);
}

}  // namespace lacuna
