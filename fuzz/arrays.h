// What the targets of files of arrays share.
#pragma once

#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/fuzz/input.h"

namespace lacuna::fuzz {

/// Reads the bytes as a file of arrays, every array in every way.
inline void read_as_arrays(const ScratchFile& file, std::string_view bytes) {
  file.write(bytes);
  answer([&] {
    const auto arrays = open_array_file(file.path());
    for (size_t i = 0; i < arrays->arrays().size(); ++i) {
      answer([&] { arrays->read(i); });
      answer([&] { arrays->read_mask(i); });
      answer([&] { arrays->read_integers(i); });
    }
  });
}

}  // namespace lacuna::fuzz
