// IDX files, plain and gzipped: images, and labels.
#include "lacuna/framework/data/formats/idx.hpp"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile file("idx");
  file.write(fuzz::text_of(data, size));
  fuzz::answer([&] {
    const IdxImages images = read_idx_images(file.path());
    fuzz::require(
        static_cast<int64_t>(images.pixels.size()) == images.count * images.rows * images.columns,
        "there are not as many pixels as the images have");
  });
  fuzz::answer([&] { read_idx_labels(file.path()); });
  return 0;
}
