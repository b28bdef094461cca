#include "lacuna/framework/io/storage/onnx_file.hpp"

#include <fmt/core.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

constexpr std::string_view kOwnBegin = "\x08\x07\x12\x06lacuna";  // IR version 7, the producer

ElementType type_of(int onnx_type) {
  switch (onnx_type) {
    case onnx::TensorProto::FLOAT:
      return ElementType::F32;
    case onnx::TensorProto::INT8:
      return ElementType::I8;
    case onnx::TensorProto::UINT8:
      return ElementType::U8;
    case onnx::TensorProto::INT64:
      return ElementType::I64;
    default:
      return ElementType::Other;
  }
}

// Names of operators' constants have a slash (OnnxGraph::constant), those of parameters have none.
bool is_of_model(const std::string& name) {
  return name.ends_with("/running_mean") || name.ends_with("/running_var") ||
         name.find('/') == std::string::npos;
}

class OnnxArrays final : public ArrayFile {
 public:
  explicit OnnxArrays(const std::string& path) : ArrayFile(path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw DataError(fmt::format("cannot read '{}'", path));
    if (!model_.ParseFromIstream(&stream)) fail("it does not end where it should");
    for (const auto& entry : model_.metadata_props()) metadata_[entry.key()] = entry.value();
    const onnx::GraphProto& graph = model_.graph();
    for (const onnx::TensorProto& tensor : graph.initializer()) {
      if (is_of_model(tensor.name())) add({.values = &tensor}, tensor.name(), tensor.dims());
    }
    for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer()) {
      if (!is_of_model(tensor.values().name())) continue;
      add({.values = &tensor.values(), .indices = &tensor.indices()}, tensor.values().name(),
          tensor.dims());
    }
  }

 private:
  struct Stored {
    const onnx::TensorProto* values;
    const onnx::TensorProto* indices = nullptr;  ///< flat, of a sparse one
  };

  [[noreturn]] void fail(const std::string& problem) const {
    throw DataError("'" + path_ + "' is not a valid ONNX model of lacuna: " + problem +
                    "; export it again");
  }

  template <class Dims>
  void add(Stored stored, const std::string& name, const Dims& dims) {
    if (!names_.insert(name).second) fail(fmt::format("the array '{}' appears twice", name));
    const ElementType type = type_of(stored.values->data_type());
    if (type == ElementType::Other) fail(fmt::format("the array '{}' has the wrong type", name));
    ArrayEntry entry{.name = name,
                     .type = type,
                     .type_name = std::string(to_string(type)),
                     .shape = shape_of(name, dims)};
    const auto elements = static_cast<uint64_t>(entry.shape.numel());
    const uint64_t bytes = stored.values->raw_data().size(), width = element_bytes(type);
    if (stored.indices == nullptr ? bytes / width != elements || bytes % width != 0
                                  : type != ElementType::F32 || bytes % width != 0) {
      fail(fmt::format("the array '{}' of shape {} has {} bytes", name, entry.shape.to_string(),
                       bytes));
    }
    if (stored.indices != nullptr) require_indices(name, stored, elements);
    stored_.push_back(stored);
    arrays_.push_back(std::move(entry));
  }

  void require_indices(const std::string& name, const Stored& stored, uint64_t elements) const {
    constexpr uint64_t kMostOfANonzero = uint64_t{1}
                                         << 16;  // elements: a shape alone costs nothing
    const std::string& raw = stored.indices->raw_data();
    const size_t count = stored.values->raw_data().size() / sizeof(float);
    if (elements > kMostOfANonzero * (count + 1) || raw.size() != count * sizeof(int64_t) ||
        stored.indices->data_type() != onnx::TensorProto::INT64) {
      fail(fmt::format(
          "the sparse array '{}' needs one index per value, and enough values for its shape",
          name));
    }
    int64_t before = -1;
    for (size_t i = 0; i < count; ++i) {
      const int64_t at = index(*stored.indices, i);
      if (at <= before || at >= static_cast<int64_t>(elements)) {
        fail(fmt::format("the indices of '{}' do not ascend within its shape", name));
      }
      before = at;
    }
  }

  static int64_t index(const onnx::TensorProto& indices, size_t i) {
    int64_t at = 0;
    std::memcpy(&at, indices.raw_data().data() + i * sizeof at, sizeof at);
    return at;
  }

  template <class Dims>
  Shape shape_of(const std::string& name, const Dims& dims) const {
    const std::vector<int64_t> sizes(dims.begin(), dims.end());
    try {
      return Shape(std::span<const int64_t>(sizes));
    } catch (const ShapeError& error) {
      fail(fmt::format("the array '{}': {}", name, error.what()));
    }
  }

  void read_bytes(size_t index_of_array, std::span<std::byte> into) const override {
    const Stored& stored = stored_[index_of_array];
    const std::string& raw = stored.values->raw_data();
    if (stored.indices == nullptr) {
      std::memcpy(into.data(), raw.data(), into.size());
      return;
    }
    std::ranges::fill(into, std::byte{0});
    for (size_t i = 0; i < raw.size() / sizeof(float); ++i) {
      const auto at = static_cast<size_t>(index(*stored.indices, i));
      std::memcpy(into.data() + at * sizeof(float), raw.data() + i * sizeof(float), sizeof(float));
    }
  }

  onnx::ModelProto model_;
  std::set<std::string> names_;
  std::vector<Stored> stored_;  // of arrays_
};

}  // namespace

bool is_own_onnx(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string begin(kOwnBegin.size(), '\0');
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return stream && begin == kOwnBegin;
}

std::unique_ptr<ArrayFile> open_onnx(const std::string& path) {
  return std::make_unique<OnnxArrays>(path);
}

}  // namespace lacuna
