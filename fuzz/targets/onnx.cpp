// ONNX models of lacuna's: the arrays in them, every one in every way.
#include "lacuna/framework/io/storage/onnx_file.hpp"

#include "lacuna/fuzz/input.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile file("model.onnx");
  file.write(fuzz::text_of(data, size));
  fuzz::answer([&] {
    is_own_onnx(file.path());
    const auto arrays = open_onnx(file.path());
    for (size_t i = 0; i < arrays->arrays().size(); ++i) {
      fuzz::answer([&] { arrays->read(i); });
      fuzz::answer([&] { arrays->read_mask(i); });
      fuzz::answer([&] { arrays->read_integers(i); });
    }
  });
  return 0;
}
