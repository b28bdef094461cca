// What the targets of image files share.
#pragma once

#include "lacuna/framework/data/formats/image.hpp"
#include "lacuna/fuzz/input.h"

namespace lacuna::fuzz {

/// Reads the bytes as an image from a file whose name gives the format.
inline void read_as_image(const ScratchFile& file, std::string_view bytes) {
  file.write(bytes);
  answer([&] {
    const Image image = read_image(file.path());
    require(
        static_cast<int64_t>(image.pixels.size()) == image.height * image.width * image.channels,
        "there are not as many pixels as the image has");
  });
}

}  // namespace lacuna::fuzz
