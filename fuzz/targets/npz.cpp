// NumPy's files: an archive of arrays, or one array, by how they begin.
#include "lacuna/fuzz/arrays.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile archive("arrays.npz"), single("array.npy");
  const std::string_view bytes = fuzz::text_of(data, size);
  fuzz::read_as_arrays(bytes.starts_with("\x93NUMPY") ? single : archive, bytes);
  return 0;
}
