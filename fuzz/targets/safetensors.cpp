// safetensors: the header, and every array in every way.
#include "lacuna/fuzz/arrays.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile file("arrays.safetensors");
  fuzz::read_as_arrays(file, fuzz::text_of(data, size));
  return 0;
}
