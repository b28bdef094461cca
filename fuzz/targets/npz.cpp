// NumPy's files: an archive of arrays, or one array, by how they begin.
#include "lacuna/framework/io/storage/array_file.h"
#include "lacuna/fuzz/input.h"

using namespace lacuna;
using fuzz::answer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile archive("arrays.npz"), single("array.npy");
  const std::string_view bytes = fuzz::text_of(data, size);
  const fuzz::ScratchFile& file = bytes.starts_with("\x93NUMPY") ? single : archive;
  file.write(bytes);
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
