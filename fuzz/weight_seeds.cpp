// Seeds of checkpoints, of quantized states, and of files of weights.
#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "seeds.h"

namespace lacuna::seeds {
namespace {

void write_checkpoints() {
  Checkpoint small{.state = {}, .config_yaml = "model: [flatten]\n", .step = 3};
  small.state.set("model/fc1.weight", some_tensor(Shape{2, 3}));
  write_checkpoint(path_of("checkpoint", "small"), small);
  Checkpoint checkpoint{.state = {}, .config_yaml = "model: [flatten]\n", .step = 30};
  checkpoint.state.set("model/fc1.weight", some_tensor(Shape{2, 4}));
  checkpoint.state.set("model/fc1.weight_mask", ByteArray{Shape{2, 4}, {1, 0, 1, 1, 0, 0, 1, 0}});
  checkpoint.state.set("model/fc2.weight/shape", std::vector<int64_t>{2, 3});
  checkpoint.state.set("model/fc2.weight/indptr", std::vector<int64_t>{0, 1, 3});
  checkpoint.state.set("model/fc2.weight/indices", std::vector<uint32_t>{2, 0, 1});
  checkpoint.state.set("quantized/fc2.weight/values", SignedBytes{Shape{3}, {-128, 127, 0}});
  checkpoint.state.set("trainer/step", int64_t{30});
  checkpoint.state.set("trainer/best", 0.5);
  checkpoint.state.set("trainer/kind", std::string("adam"));
  write_checkpoint(path_of("checkpoint", "all_kinds"), checkpoint);
  for (const char* name : {"small", "all_kinds"}) drop_seal("checkpoint", name);
  write("masks", "checkpoint", read(path_of("checkpoint", "all_kinds")));
}

void write_quantized() {
  Checkpoint checkpoint{.state = {}, .config_yaml = "model: [flatten]\n", .step = 5};
  const StateDict::Value values = SignedBytes{Shape{3}, {1, -2, 127}},
                         earlier = ByteArray{Shape{3}, {1, 254, 127}};
  checkpoint.state.set("model/fc1.weight/shape", std::vector<int64_t>{2, 3});
  checkpoint.state.set("model/fc1.weight/indptr", std::vector<int64_t>{0, 1, 3});
  checkpoint.state.set("model/fc1.weight/indices", std::vector<uint32_t>{2, 0, 1});
  checkpoint.state.set("model/fc2.weight_mask", ByteArray{Shape{2, 2}, {1, 0, 1, 1}});
  for (const std::string name : {"fc1.weight", "fc2.weight"}) {
    const std::string at = "quantized/" + name + "/";
    checkpoint.state.set(at + "values", name == "fc1.weight" ? values : earlier);
    checkpoint.state.set(at + "scales", some_tensor(Shape{2}));
    checkpoint.state.set(at + "input_scale", 0.5);
    checkpoint.state.set(at + "input_zero", int64_t{3});
    for (const char* key : {"clipped_weights", "clipped_inputs", "relative_error"}) {
      checkpoint.state.set(at + key, 0.25);
    }
  }
  write_checkpoint(path_of("quantized_state", "layers"), checkpoint);
  Checkpoint float32_inputs{.state = {}, .config_yaml = checkpoint.config_yaml, .step = 5};
  for (const auto& [name, value] : checkpoint.state.values()) {
    if (!name.ends_with("/input_zero")) float32_inputs.state.set(name, value);
  }
  for (const char* weight : {"fc1.weight", "fc2.weight"}) {
    float32_inputs.state.set(std::string("quantized/") + weight + "/input_scale", 0.0);
  }
  write_checkpoint(path_of("quantized_state", "float32_inputs"), float32_inputs);
  for (const char* name : {"layers", "float32_inputs"}) drop_seal("quantized_state", name);
  const std::vector<NamedArray> arrays = {
      {"fc.weight", SignedBytes{Shape{2, 3}, {1, 0, -127, 5, 0, 7}}},
      {"fc.weight_scale", some_tensor(Shape{2, 1})},
      {"fc.weight_folded_scale", some_tensor(Shape{2})},
      {"fc.input_scale", some_tensor(Shape{1})},
      {"fc.input_zero_point", std::vector<int32_t>{128}},
      {"c_fc.weight", SignedBytes{Shape{2, 3}, {1, 2, 3, 4, 5, 6}}},
      {"c_fc.weight_scale", some_tensor(Shape{1, 3})},
      {"c_fc.input_scale", some_tensor(Shape{1})},
      {"c_fc.input_zero_point", SignedBytes{Shape{1}, {-5}}}};
  write_safetensors_arrays(path_of("stored_arrays", "int8"), arrays);
  write_safetensors_arrays(path_of("stored_arrays", "float32_inputs"), {arrays[0], arrays[1]},
                           {{"lacuna.rounds_inputs", "false"}});
}

// As export --sparse, scipy, cstorch and torch.nn.utils.prune leave them.
void write_sparse_weights() {
  const std::vector<int64_t> sizes = {2, 3};
  const std::vector<int32_t> bits = {0b101001};
  write_safetensors_arrays(path_of("stored_arrays", "bitmasks"),
                           {{"fc1.weight.data", some_tensor(Shape{3})},
                            {"fc1.weight.bitmask", bits},
                            {"fc1.weight.shape", sizes},
                            {"fc2.weight.data", SignedBytes{Shape{3}, {1, -127, 7}}},
                            {"fc2.weight.bitmask", bits},
                            {"fc2.weight.shape", sizes},
                            {"fc2.weight_scale", some_tensor(Shape{2, 1})},
                            {"fc2.input_scale", some_tensor(Shape{1})},
                            {"fc2.input_zero_point", std::vector<int32_t>{128}}});
  const ByteArray mask{Shape{2, 3}, {1, 0, 0, 1, 0, 1}};
  write_safetensors_arrays(path_of("stored_arrays", "masks"),
                           {{"fc1.weight.data", some_tensor(Shape{3})},
                            {"fc1.weight.indices", std::vector<int32_t>{0, 0, 2}},
                            {"fc1.weight.indptr", std::vector<int32_t>{0, 1, 3}},
                            {"fc1.weight.shape", sizes},
                            {"fc2.weight", some_tensor(Shape{2, 3})},
                            {"fc2.weight_mask", mask},
                            {"fc3.weight_orig", some_tensor(Shape{2, 3})},
                            {"fc3.weight_mask", mask},
                            {"fc4.weight", SignedBytes{Shape{2, 3}, {1, 0, -127, 5, 0, 7}}},
                            {"fc4.weight_mask", mask},
                            {"fc4.weight_scale", some_tensor(Shape{2, 1})}});
  // The mask says nothing of so many positions.
  write_safetensors_arrays(
      path_of("stored_arrays", "huge_shape"),
      {{"fc.weight.data", SignedBytes{Shape{3}, {1, -127, 7}}},
       {"fc.weight.bitmask", bits},
       {"fc.weight.shape", std::vector<int64_t>{int64_t{1} << 20, int64_t{1} << 20}},
       {"fc.weight_scale", some_tensor(Shape{1})}});
}

template <class T>
void set_raw(onnx::TensorProto& tensor, const std::string& name, int type,
             const std::vector<int64_t>& dims, const std::vector<T>& values) {
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const int64_t size : dims) tensor.add_dims(size);
  tensor.set_raw_data(values.data(), values.size() * sizeof(T));
}

void write_onnx() {
  onnx::ModelProto model;
  model.set_ir_version(7);
  model.set_producer_name("lacuna");
  onnx::GraphProto& graph = *model.mutable_graph();
  set_raw<int8_t>(*graph.add_initializer(), "fc.weight", onnx::TensorProto::INT8, {2, 3},
                  {1, 0, -127, 5, 0, 7});
  set_raw<float>(*graph.add_initializer(), "fc.weight_scale", onnx::TensorProto::FLOAT, {2},
                 {0.5f, 0.25f});
  set_raw<uint8_t>(*graph.add_initializer(), "fc.input_zero_point", onnx::TensorProto::UINT8, {},
                   {128});
  set_raw<int64_t>(*graph.add_initializer(), "fc/integers", onnx::TensorProto::INT64, {1}, {2});
  onnx::SparseTensorProto& sparse = *graph.add_sparse_initializer();
  sparse.add_dims(4);
  set_raw<float>(*sparse.mutable_values(), "fc2.weight", onnx::TensorProto::FLOAT, {1}, {2.0f});
  set_raw<int64_t>(*sparse.mutable_indices(), "", onnx::TensorProto::INT64, {1}, {3});
  std::string bytes;
  model.SerializeToString(&bytes);
  write("onnx", "model", bytes);
}

void write_arrays() {
  const std::vector<NamedArray> arrays = {{"weight", some_tensor(Shape{2, 3})},
                                          {"mask", ByteArray{Shape{2, 2}, {1, 0, 0, 1}}},
                                          {"ids", std::vector<int32_t>{1, 2, 3}},
                                          {"steps", std::vector<int64_t>{-1, 5}}};
  write_safetensors_arrays(path_of("safetensors", "arrays"), arrays);
  write_npz(path_of("npz", "arrays"), arrays);
  write("safetensors", "half",
        std::string("\x40\0\0\0\0\0\0\0", 8) +
            "{\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}       " +
            "\x80?\0@");
  std::string header = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1), }";
  header += std::string(64 - (10 + header.size()) % 64 - 1, ' ') + "\n";
  std::string npy("\x93NUMPY\x01\0", 8);
  npy += static_cast<char>(header.size());
  npy += '\0';
  write("npz", "array", npy + header + std::string("\0\0\x80\x3f\0\0\0\x40", 8));
}

}  // namespace

void write_weights() {
  write_checkpoints();
  write_arrays();
  write_quantized();
  write_sparse_weights();
  write_onnx();
}

}  // namespace lacuna::seeds
