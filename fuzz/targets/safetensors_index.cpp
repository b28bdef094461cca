// A model in two safetensors files: the index and both files, between bytes 0xFF. In the index
// A.safetensors and B.safetensors stand for them.
#include "lacuna/framework/io/storage/safetensors_index.hpp"

#include "lacuna/fuzz/arrays.h"

using namespace lacuna;

namespace {

void replace_all(std::string& text, const std::string& word, const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  size_t at = 0;
  while ((at = text.find(word, at)) != std::string::npos) {
    text.replace(at, word.size(), name);
    at += name.size();  // which ends with the word
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile index("model.safetensors.index.json"), a("A.safetensors"),
      b("B.safetensors");
  const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 3);
  std::string text(parts[0]);
  replace_all(text, "A.safetensors", a.path());
  replace_all(text, "B.safetensors", b.path());
  a.write(parts[1]);
  b.write(parts[2]);
  fuzz::answer([&] {
    for (const auto& [tensor, file] : parse_safetensors_index(text)) {
      fuzz::require(file.find('/') == std::string::npos, "a file is not next to the index");
    }
  });
  fuzz::read_as_arrays(index, text);
  return 0;
}
