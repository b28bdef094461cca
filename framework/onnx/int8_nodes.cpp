#include "lacuna/framework/onnx/int8_nodes.hpp"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

const std::vector<int64_t> kOfARow{-1}, kOfAnImage{1, 2, 3};

class Int8Nodes {
 public:
  Int8Nodes(onnx::GraphProto& graph, const std::vector<OnnxInt8Weight>& weights) : graph_(graph) {
    for (const OnnxInt8Weight& weight : weights) {
      weights_[weight.name] = &weight;
      write_initializers(weight);
    }
  }

  void rewrite() {
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
    nodes.Swap(graph_.mutable_node());
    for (onnx::NodeProto& node : nodes) {
      rewrite(node);
      *graph_.add_node() = std::move(node);
    }
    for (const auto& [name, weight] : weights_) {
      if (done_.contains(name)) continue;
      throw Error("the int8 weight '" + name +
                  "' is neither that of a linear product nor of a convolution in ONNX");
    }
  }

 private:
  onnx::TensorProto& initializer(const std::string& name) {
    for (onnx::TensorProto& tensor : *graph_.mutable_initializer()) {
      if (tensor.name() == name) return tensor;
    }
    throw Error("the model has no weight '" + name + "' to be written in int8");
  }

  template <class T>
  std::string add_values(const std::string& name, onnx::TensorProto::DataType type,
                         const std::vector<T>& values, bool is_scalar = false) {
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    if (!is_scalar) tensor.add_dims(static_cast<int64_t>(values.size()));
    tensor.set_raw_data(values.data(), values.size() * sizeof(T));
    return name;
  }
  std::string add_scalar(const std::string& name, float value) {
    return add_values(name, onnx::TensorProto::FLOAT, std::vector<float>{value}, true);
  }

  static std::string stem_of(const OnnxInt8Weight& weight) {
    return weight.name.substr(0, weight.name.rfind('.') + 1);
  }

  void write_initializers(const OnnxInt8Weight& weight) {
    onnx::TensorProto& values = initializer(weight.name);
    values.set_data_type(onnx::TensorProto::INT8);
    values.set_raw_data(weight.values.data(), weight.values.size());
    add_values(weight.name + "_scale", onnx::TensorProto::FLOAT, weight.scales);
    if (weight.input_scale == 0.0f) return;
    add_scalar(stem_of(weight) + "input_scale", weight.input_scale);
    add_values(stem_of(weight) + "input_zero_point", onnx::TensorProto::UINT8,
               std::vector<uint8_t>{weight.input_zero}, true);
  }

  std::string add_node(const std::string& type, const std::string& name,
                       const std::vector<std::string>& inputs) {
    onnx::NodeProto& node = *graph_.add_node();
    node.set_op_type(type);
    node.set_name(name);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(name + ":out");
    return node.output(0);
  }
  void add_integer(const char* name, int64_t value) {
    onnx::AttributeProto& attribute = *graph_.mutable_node(graph_.node_size() - 1)->add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }

  std::string weight_as_floats(const OnnxInt8Weight& weight) {
    std::string floats = add_node("DequantizeLinear", weight.name + "/DequantizeLinear",
                                  {weight.name, weight.name + "_scale"});
    add_integer("axis", 0);
    return floats;
  }

  // Without a grid of the tensor, each part of x along the `axes` has its own.
  std::string on_grid(const OnnxInt8Weight& weight, const std::string& x,
                      const std::vector<int64_t>& axes) {
    if (!weight.rounds_inputs) return x;
    const std::string stem = stem_of(weight), at = weight.name + "/input/";
    if (weight.input_scale == 0.0f) return on_own_grids(at, x, axes);
    const std::string scale = stem + "input_scale", zero = stem + "input_zero_point";
    const std::string bytes = add_node("QuantizeLinear", at + "QuantizeLinear", {x, scale, zero});
    return add_node("DequantizeLinear", at + "DequantizeLinear", {bytes, scale, zero});
  }

  std::string extreme(const char* reduce, const char* choose, const std::string& at,
                      const std::string& x, const std::vector<int64_t>& axes,
                      const std::string& nothing) {
    const std::string found = add_node(reduce, at + reduce, {x});
    onnx::AttributeProto& attribute = *graph_.mutable_node(graph_.node_size() - 1)->add_attribute();
    attribute.set_name("axes");
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const int64_t axis : axes) attribute.add_ints(axis);
    return add_node(choose, at + choose, {found, nothing});
  }

  // Each part spans its own values and 0: scale = (high − low) / 255, zero = round(−low / scale).
  std::string on_own_grids(const std::string& at, const std::string& x,
                           const std::vector<int64_t>& axes) {
    const std::string nothing = add_scalar(at + "nothing", 0.0f),
                      most = add_scalar(at + "most", 255.0f), one = add_scalar(at + "one", 1.0f);
    const std::string low = extreme("ReduceMin", "Min", at, x, axes, nothing),
                      high = extreme("ReduceMax", "Max", at, x, axes, nothing);
    const std::string span = add_node("Sub", at + "span", {high, low});
    const std::string step = add_node("Div", at + "step", {span, most});
    const std::string is_flat = add_node("Equal", at + "is_flat", {span, nothing});
    const std::string scale = add_node("Where", at + "scale", {is_flat, one, step});
    const std::string offset = add_node("Div", at + "offset", {low, scale});
    const std::string negated = add_node("Neg", at + "negated", {offset});
    const std::string zero = add_node("Round", at + "zero", {negated});
    const std::string steps = add_node("Div", at + "steps", {x, scale});
    const std::string rounded = add_node("Round", at + "rounded", {steps});
    const std::string moved = add_node("Add", at + "moved", {rounded, zero});
    const std::string bytes = add_node("Clip", at + "bytes", {moved, nothing, most});
    const std::string back = add_node("Sub", at + "back", {bytes, zero});
    return add_node("Mul", at + "product", {back, scale});
  }

  const OnnxInt8Weight* weight_at(const onnx::NodeProto& node, int input) const {
    if (node.input_size() <= input) return nullptr;
    const auto found = weights_.find(node.input(input));
    return found == weights_.end() ? nullptr : found->second;
  }

  void rewrite(onnx::NodeProto& node) {
    if (const OnnxInt8Weight* weight = weight_at(node, 0);
        weight != nullptr && node.op_type() == "Transpose") {
      node.set_input(0, weight_as_floats(*weight));
      turned_[node.output(0)] = weight;
      return;
    }
    if (const OnnxInt8Weight* weight = weight_at(node, 1);
        weight != nullptr && (node.op_type() == "Gemm" || node.op_type() == "Conv")) {
      const bool is_image = node.op_type() == "Conv";
      node.set_input(0, on_grid(*weight, node.input(0), is_image ? kOfAnImage : kOfARow));
      node.set_input(1, weight_as_floats(*weight));
      done_.insert(weight->name);
      return;
    }
    if (node.op_type() != "MatMul") return;
    const auto turned = turned_.find(node.input(1));
    if (turned == turned_.end()) return;
    node.set_input(0, on_grid(*turned->second, node.input(0), kOfARow));
    done_.insert(turned->second->name);
  }

  onnx::GraphProto& graph_;
  std::map<std::string, const OnnxInt8Weight*> weights_;
  std::map<std::string, const OnnxInt8Weight*> turned_;  // by the output of their Transpose
  std::set<std::string> done_;
};

}  // namespace

void write_int8_nodes(onnx::ModelProto& model, const std::vector<OnnxInt8Weight>& weights) {
  if (weights.empty()) return;
  Int8Nodes(*model.mutable_graph(), weights).rewrite();
}

}  // namespace lacuna
