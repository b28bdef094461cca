// WebP images.
#include "lacuna/fuzz/images.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile file("image.webp");
  fuzz::read_as_image(file, fuzz::text_of(data, size));
  return 0;
}
