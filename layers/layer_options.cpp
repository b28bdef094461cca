#include "lacuna/layers/layer_options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"

namespace lacuna {

int64_t read_features(const Config& options, const char* key, const Shape& input) {
  if (input.rank() < 1) {
    throw ShapeError("this layer needs examples of shape [..., features], its input has shape " +
                     input.to_string());
  }
  const auto features = options.get<int64_t>(key, input.features());
  if (features != input.features()) {
    throw ShapeError(fmt::format("{} is {}, but the examples that reach this layer have shape {}",
                                 key, features, input.to_string()));
  }
  return features;
}

Extent read_extent(const Config& options, const char* key, Extent otherwise, int64_t least) {
  const Config node = options.get(key);
  if (node.is_null()) {
    const bool is_square = otherwise.height == otherwise.width;
    if (is_square) return {options.get<int64_t>(key, otherwise.height), otherwise.width};
    return otherwise;
  }
  Extent extent;
  if (node.is_list()) {
    const auto sides = node.as<std::vector<int64_t>>();
    if (sides.size() != 2) node.fail("a number, or [height, width]");
    extent = {sides[0], sides[1]};
  } else {
    const auto side = node.as<int64_t>();
    extent = {side, side};
  }
  constexpr int64_t kMost = 1 << 20;
  if (std::min(extent.height, extent.width) < least ||
      std::max(extent.height, extent.width) > kMost) {
    node.fail(fmt::format("numbers from {} to {}", least, kMost));
  }
  return extent;
}

int64_t read_channels(const Config& options, const char* key, const Shape& input) {
  if (input.rank() != 3) {
    throw ShapeError(
        "this layer needs examples of shape [channels, height, width], its input has "
        "shape " +
        input.to_string());
  }
  const auto channels = options.get<int64_t>(key, input[0]);
  if (channels != input[0]) {
    throw ShapeError(fmt::format("{} is {}, but the examples that reach this layer have shape {}",
                                 key, channels, input.to_string()));
  }
  return channels;
}

}  // namespace lacuna
