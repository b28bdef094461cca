// Sizes of convolutions of one group that need every kind of copy, or none.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/core/convolution_shape.h"

namespace lacuna::test {

inline std::vector<ConvolutionShape> convolution_sizes() {
  std::vector<ConvolutionShape> all;
  for (const Extent image : {Extent{8, 8}, {9, 6}, {7, 12}, {6, 5}}) {
    for (const Extent kernel : {Extent{1, 1}, {2, 2}, {3, 3}, {3, 1}, {1, 4}, {5, 5}}) {
      for (const Extent stride : {Extent{1, 1}, {2, 2}, {1, 3}}) {
        for (const Extent padding : {Extent{0, 0}, {1, 1}, {2, 1}}) {
          all.push_back({2, 2, 3, 1, image, {kernel, stride, padding}});
        }
      }
    }
    all.push_back({2, 2, 3, 1, image, {{3, 3}, {1, 1}, {2, 2}, {2, 2}}});
    all.push_back({2, 2, 3, 1, image, {{2, 3}, {2, 3}, {3, 3}, {3, 2}}});
  }
  all.push_back({2, 3, 2, 1, {1, 1}, {{3, 3}, {1, 1}, {1, 1}}});
  all.push_back({2, 3, 2, 1, {1, 1}, {{1, 1}}});
  all.push_back({2, 3, 2, 1, {13, 12}, {{7, 7}, {2, 2}, {3, 3}}});
  all.push_back({2, 3, 2, 1, {6, 6}, {{6, 6}}});
  all.push_back({2, 3, 2, 1, {3, 3}, {{1, 1}, {4, 4}}});  // a stride past the image
  return all;
}

inline std::string name_of_sizes(const ConvolutionShape& s) {
  return s.image.to_string() + " kernel " + s.window.kernel.to_string() + " stride " +
         s.window.stride.to_string() + " padding " + s.window.padding.to_string() + " dilation " +
         s.window.dilation.to_string();
}

}  // namespace lacuna::test
