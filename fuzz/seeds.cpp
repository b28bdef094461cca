#include "seeds.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "lacuna/framework/io/storage/checkpoint_seal.hpp"

namespace lacuna::seeds {
namespace {

std::filesystem::path corpus;

}  // namespace

void set_corpus(const std::string& folder) { corpus = folder; }

std::string path_of(const std::string& target, const std::string& name) {
  std::filesystem::create_directories(corpus / target);
  return (corpus / target / name).string();
}

void write(const std::string& target, const std::string& name, std::string_view bytes) {
  std::ofstream stream(path_of(target, name), std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string read(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void drop_seal(const std::string& target, const std::string& name) {
  const std::string bytes = read(path_of(target, name));
  write(target, name, std::string_view(bytes).substr(static_cast<size_t>(kSealBytes)));
}

Tensor some_tensor(const Shape& shape) {
  Tensor tensor = Tensor::zeros(shape);
  float value = -1.0F;
  for (float& element : tensor.mutable_storage()) element = value += 0.25F;
  return tensor;
}

}  // namespace lacuna::seeds
