// ONNX files as the standard's own library reads them.
#pragma once

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace lacuna::onnx_tests {

inline bool parse_onnx(const std::string& path, onnx::ModelProto& model) {
  std::ifstream stream(path, std::ios::binary);
  return stream && model.ParseFromIstream(&stream);
}

inline onnx::ModelProto read_onnx(const std::string& path) {
  onnx::ModelProto model;
  EXPECT_TRUE(parse_onnx(path, model)) << path;
  return model;
}

inline std::map<std::string, std::string> metadata_of(const onnx::ModelProto& model) {
  std::map<std::string, std::string> metadata;
  for (const auto& entry : model.metadata_props()) metadata[entry.key()] = entry.value();
  return metadata;
}

/// "input float32 [batch, 3, 16, 14]": an input or output, with sizes and names of dimensions.
inline std::string described(const onnx::ValueInfoProto& value) {
  const auto& tensor = value.type().tensor_type();
  std::string text = value.name();
  text += tensor.elem_type() == onnx::TensorProto::FLOAT   ? " float32 ["
          : tensor.elem_type() == onnx::TensorProto::INT64 ? " int64 ["
                                                           : " another type [";
  for (int i = 0; i < tensor.shape().dim_size(); ++i) {
    const auto& dim = tensor.shape().dim(i);
    text += i == 0 ? "" : ", ";
    text += dim.has_dim_param() ? dim.dim_param() : std::to_string(dim.dim_value());
  }
  return text + "]";
}

inline std::vector<std::string> inputs_of(const onnx::ModelProto& model) {
  std::vector<std::string> all;
  for (const auto& value : model.graph().input()) all.push_back(described(value));
  return all;
}

inline std::vector<std::string> results_of(const onnx::ModelProto& model) {
  std::vector<std::string> all;
  for (const auto& value : model.graph().output()) all.push_back(described(value));
  return all;
}

}  // namespace lacuna::onnx_tests
