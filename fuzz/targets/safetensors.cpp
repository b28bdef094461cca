// safetensors: the header, and every array in every way.
#include "lacuna/framework/io/storage/array_file.h"
#include "lacuna/fuzz/input.h"

using namespace lacuna;
using fuzz::answer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile file("arrays.safetensors");
  file.write(fuzz::text_of(data, size));
  answer([&] {
    const auto arrays = open_array_file(file.path());
    for (size_t i = 0; i < arrays->arrays().size(); ++i) {
      answer([&] { arrays->read(i); });
      answer([&] { arrays->read_mask(i); });
      answer([&] { arrays->read_integers(i); });
    }
  });
  return 0;
}
