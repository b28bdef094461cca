#include "lacuna/framework/onnx/model_file.hpp"

#include <fmt/core.h>
#include <onnx/checker.h>
#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <exception>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/onnx/int8_nodes.hpp"

namespace lacuna {
namespace {

// IR version 7 came with opset 12 and 13 (ONNX 1.8).
constexpr int64_t kIrVersion = 7, kOpset = 13;
constexpr size_t kLargestMessage = (size_t{1} << 31) - 1;  // of protobuf

static_assert(std::endian::native == std::endian::little, "ONNX holds little-endian numbers");

template <class T>
void set_raw(onnx::TensorProto& tensor, onnx::TensorProto::DataType type,
             std::span<const T> values) {
  tensor.set_data_type(type);
  tensor.set_raw_data(values.data(), values.size_bytes());
}

// Whether coordinates of 8 bytes and values of 4 take less than all values. A bias of zeros is
// small: it stays dense, because fewer tools read sparse initializers.
bool is_sparse(const OnnxConstant& constant, const Tensor& values) {
  if (constant.dims.size() < 2) return false;
  const auto zeros = std::ranges::count(values.storage(), 0.0f);
  return 3 * (values.numel() - zeros) < values.numel();
}

// Flat, ascending coordinates.
void add_sparse_constant(onnx::GraphProto& graph, const OnnxConstant& constant,
                         const Tensor& values) {
  std::vector<float> nonzeros;
  std::vector<int64_t> coordinates;
  for (size_t i = 0; i < values.storage().size(); ++i) {
    if (values.storage()[i] == 0.0f) continue;
    nonzeros.push_back(values.storage()[i]);
    coordinates.push_back(static_cast<int64_t>(i));
  }
  onnx::SparseTensorProto& tensor = *graph.add_sparse_initializer();
  for (const int64_t size : constant.dims) tensor.add_dims(size);
  tensor.mutable_values()->set_name(constant.name);
  tensor.mutable_values()->add_dims(static_cast<int64_t>(nonzeros.size()));
  set_raw<float>(*tensor.mutable_values(), onnx::TensorProto::FLOAT, nonzeros);
  tensor.mutable_indices()->add_dims(static_cast<int64_t>(coordinates.size()));
  set_raw<int64_t>(*tensor.mutable_indices(), onnx::TensorProto::INT64, coordinates);
}

void add_constant(onnx::GraphProto& graph, const OnnxConstant& constant, OnnxValues values) {
  if (const auto* floats = std::get_if<Tensor>(&constant.values);
      values == OnnxValues::Sparse && floats != nullptr && is_sparse(constant, *floats)) {
    return add_sparse_constant(graph, constant, *floats);
  }
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(constant.name);
  for (const int64_t size : constant.dims) tensor.add_dims(size);
  if (const auto* floats = std::get_if<Tensor>(&constant.values)) {
    set_raw<float>(tensor, onnx::TensorProto::FLOAT, floats->storage());
  } else {
    set_raw<int64_t>(tensor, onnx::TensorProto::INT64,
                     std::get<std::vector<int64_t>>(constant.values));
  }
}

struct SetAttribute {
  onnx::AttributeProto& attribute;
  void operator()(int64_t value) const {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  void operator()(float value) const {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const int64_t value : values) attribute.add_ints(value);
  }
};

void add_node(onnx::GraphProto& graph, const OnnxNode& node) {
  onnx::NodeProto& proto = *graph.add_node();
  proto.set_op_type(node.type);
  proto.set_name(node.name);
  for (const std::string& input : node.inputs) proto.add_input(input);
  for (const std::string& output : node.outputs) proto.add_output(output);
  for (const OnnxAttribute& attribute : node.attributes) {
    onnx::AttributeProto& added = *proto.add_attribute();
    added.set_name(attribute.name);
    std::visit(SetAttribute{added}, attribute.value);
  }
}

void set_value(onnx::ValueInfoProto& proto, const OnnxValue& value) {
  proto.set_name(value.name);
  onnx::TypeProto::Tensor& type = *proto.mutable_type()->mutable_tensor_type();
  type.set_elem_type(value.is_integer ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT);
  for (const auto& dim : value.dims) {
    onnx::TensorShapeProto::Dimension& added = *type.mutable_shape()->add_dim();
    if (const auto* size = std::get_if<int64_t>(&dim)) {
      added.set_dim_value(*size);
    } else {
      added.set_dim_param(std::get<std::string>(dim));
    }
  }
}

onnx::ModelProto model_of(const OnnxGraph& graph,
                          const std::map<std::string, std::string>& metadata, OnnxValues values,
                          const std::vector<OnnxInt8Weight>& int8) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("lacuna");
  model.set_producer_version(kVersion);
  model.add_opset_import()->set_version(kOpset);
  for (const auto& [key, value] : metadata) {
    onnx::StringStringEntryProto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  onnx::GraphProto& proto = *model.mutable_graph();
  proto.set_name("lacuna");
  for (const OnnxValue& value : graph.inputs()) set_value(*proto.add_input(), value);
  for (const OnnxValue& value : graph.outputs()) set_value(*proto.add_output(), value);
  for (const OnnxConstant& constant : graph.constants()) add_constant(proto, constant, values);
  for (const OnnxNode& node : graph.nodes()) add_node(proto, node);
  write_int8_nodes(model, int8);
  return model;
}

// Of a copy, because shape inference writes what it found into the model.
void check(onnx::ModelProto model, OnnxValues values) {
  try {
    onnx::checker::check_model(model);
    // Inference gives sparse initializers a type of their own, which no operator takes.
    if (values == OnnxValues::Sparse) return;
    constexpr bool kChecksTypes = true, kPropagatesData = true;
    constexpr int kStrict = 1;
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                       {kChecksTypes, kStrict, kPropagatesData});
  } catch (const std::exception& error) {
    throw Error(
        fmt::format("the ONNX checker rejects the exported model, which is a bug in lacuna: {}; "
                    "--format safetensors still exports its weights",
                    error.what()));
  }
}

uint64_t bytes(const OnnxGraph& graph) {
  uint64_t sum = 0;
  for (const OnnxConstant& constant : graph.constants()) {
    if (const auto* floats = std::get_if<Tensor>(&constant.values)) {
      sum += floats->storage().size_bytes();
    }
  }
  return sum;
}

}  // namespace

void require_onnx_size(uint64_t bytes) {
  constexpr size_t kForTheRest = size_t{16} << 20;  // what is no number of a weight
  if (bytes <= kLargestMessage - kForTheRest) return;
  throw Error(
      fmt::format("the model has {:.1f} GiB of values, and an ONNX file holds less than "
                  "2 GiB; export it with --format safetensors",
                  static_cast<double>(bytes) / (1 << 30)));
}

size_t write_onnx_file(const OnnxGraph& graph, const std::map<std::string, std::string>& metadata,
                       const std::string& path, OnnxValues values,
                       const std::vector<OnnxInt8Weight>& int8, const CountSparse& before_writing) {
  require_onnx_size(bytes(graph));
  if (values == OnnxValues::Sparse) {
    check(model_of(graph, metadata, OnnxValues::Dense, int8), OnnxValues::Dense);
  }
  const onnx::ModelProto model = model_of(graph, metadata, values, int8);
  check(model, values);
  const auto sparse = static_cast<size_t>(model.graph().sparse_initializer_size());
  if (before_writing) before_writing(sparse);
  FileReplacement replacement(path);
  errno = 0;
  std::ofstream file(replacement.temporary_path(), std::ios::binary);
  if (!file || !model.SerializeToOstream(&file) || !file.flush()) {
    throw Error(fmt::format("'{}' cannot be written: {}", path, std::strerror(errno)));
  }
  file.close();
  replacement.flush();
  replacement.commit();
  return sparse;
}

}  // namespace lacuna
