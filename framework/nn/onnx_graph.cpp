#include "lacuna/framework/nn/onnx_graph.h"

#include <fmt/core.h>

#include <algorithm>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

std::vector<int64_t> dims_of(const Shape& shape) {
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape[i]);
  return dims;
}

int64_t length(const std::vector<int64_t>& values) { return static_cast<int64_t>(values.size()); }

}  // namespace

std::string OnnxGraph::unique(const std::string& what) {
  const std::string name = layer_.empty() ? what : layer_ + "/" + what;
  const int64_t use = uses_[name]++;
  return use == 0 ? name : name + "_" + std::to_string(use);
}

OnnxGraph::Names OnnxGraph::add_with_outputs(const std::string& type, Names inputs, int outputs,
                                             Attributes attributes) {
  OnnxNode node{.type = type,
                .name = unique(type),
                .inputs = std::move(inputs),
                .outputs = {},
                .attributes = std::move(attributes)};
  for (int i = 0; i < outputs; ++i) {
    node.outputs.push_back(node.name + (outputs == 1 ? ":out" : ":out" + std::to_string(i)));
  }
  nodes_.push_back(node);
  return node.outputs;
}

std::string OnnxGraph::add(const std::string& type, Names inputs, Attributes attributes) {
  return add_with_outputs(type, std::move(inputs), 1, std::move(attributes)).front();
}

std::string OnnxGraph::constant(const std::string& what, std::vector<int64_t> dims,
                                std::variant<Tensor, std::vector<int64_t>> values) {
  // The slash tells constants from parameters where such a file is read.
  constants_.push_back(
      {unique(layer_.empty() ? "/" + what : what), std::move(dims), std::move(values)});
  return constants_.back().name;
}

std::string OnnxGraph::parameter(const Parameter& parameter) {
  const auto [entry, is_new] = parameters_.emplace(&parameter, parameter.name());
  if (is_new) {
    constants_.push_back({parameter.name(), dims_of(parameter.shape()), parameter.to_dense()});
  }
  return entry->second;
}

std::string OnnxGraph::floats(const std::string& what, const Tensor& values) {
  return constant(what, dims_of(values.shape()), values);
}

std::string OnnxGraph::scalar(float value) {
  return constant("scalar", {}, Tensor::from({1}, {&value, 1}));
}

std::string OnnxGraph::integers(std::vector<int64_t> values) {
  const int64_t count = length(values);
  return constant("integers", {count}, std::move(values));
}

std::string OnnxGraph::integer(int64_t value) {
  return constant("integer", {}, std::vector<int64_t>{value});
}

std::string OnnxGraph::reshape(const std::string& x, std::vector<int64_t> dims) {
  return add("Reshape", {x, integers(std::move(dims))});
}

std::string OnnxGraph::transpose(const std::string& x, std::vector<int64_t> permutation) {
  return add("Transpose", {x}, {{"perm", std::move(permutation)}});
}

std::string OnnxGraph::unsqueeze(const std::string& x, std::vector<int64_t> axes) {
  return add("Unsqueeze", {x, integers(std::move(axes))});
}

OnnxGraph::Names OnnxGraph::split(const std::string& x, std::vector<int64_t> sizes, int64_t axis) {
  const int parts = static_cast<int>(sizes.size());
  return add_with_outputs("Split", {x, integers(std::move(sizes))}, parts, {{"axis", axis}});
}

std::string OnnxGraph::cast(const std::string& x, OnnxType type) {
  return add("Cast", {x}, {{"to", static_cast<int64_t>(type)}});
}

std::string OnnxGraph::size(const std::string& x, int64_t axis) {
  return add("Gather", {add("Shape", {x}), integers({axis})}, {{"axis", int64_t{0}}});
}

std::string OnnxGraph::positions(const std::string& x) {
  const std::string end = add("Squeeze", {size(x, 1), integers({0})});
  return add("Range", {integer(0), end, integer(1)});
}

void OnnxGraph::name_output(const std::string& value, const std::string& name) {
  layer_.clear();
  nodes_.push_back({"Identity", unique("Identity"), {value}, {name}, {}});
}

bool OnnxGraph::has_input(std::string_view name) const {
  return std::any_of(inputs_.begin(), inputs_.end(),
                     [&](const OnnxValue& input) { return input.name == name; });
}

OnnxForm onnx_operator(std::string type) {
  return [type = std::move(type)](OnnxGraph& graph, const Module&, const std::string& input,
                                  const Shape&) { return graph.add(type, {input}); };
}

OnnxForm onnx_identity() {
  return [](OnnxGraph&, const Module&, const std::string& input, const Shape&) { return input; };
}

void refuse_onnx(const Module& layer, const std::string& why) {
  throw Error(fmt::format("layer '{}' ({}) cannot be exported to ONNX: {}", layer.path(),
                          layer.type(), why));
}

ParameterPtr own_parameter(const Module& layer, std::string_view name) {
  for (const auto& [own, parameter] : layer.own_parameters()) {
    if (own == name) return parameter;
  }
  return nullptr;
}

}  // namespace lacuna
