// PNG images.
#include "lacuna/framework/data/formats/image.h"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile file("image.png");
  file.write(fuzz::text_of(data, size));
  fuzz::answer([&] {
    const Image image = read_image(file.path());
    fuzz::require(
        static_cast<int64_t>(image.pixels.size()) == image.height * image.width * image.channels,
        "there are not as many pixels as the image has");
  });
  return 0;
}
