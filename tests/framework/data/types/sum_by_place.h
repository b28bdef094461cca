// A number that tells whether a drawn data set is as it was.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lacuna {

/// The pixels of the images 0 … 499 that `draw(index)` gives, with weights by place, so that no
/// image may be turned or moved.
template <class Draw>
double sum_by_place(Draw draw) {
  int64_t total = 0;
  for (int64_t index = 0; index < 500; ++index) {
    const auto image = draw(index);
    for (size_t place = 0; place < image.pixels.size(); ++place) {
      total += image.pixels[place] * static_cast<int64_t>(place % 101);
    }
  }
  return static_cast<double>(total);
}

}  // namespace lacuna
