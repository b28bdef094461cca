// The groups of a convolution's channels.
#pragma once

#include <fmt/core.h>

#include <cstdint>

#include "lacuna/framework/core/error.h"

namespace lacuna {

/// *Errors:* ConfigError that names the layer where groups do not divide the channels.
inline void require_divisible(const char* layer, int64_t in_channels, int64_t out_channels,
                              int64_t groups) {
  if (groups >= 1 && in_channels % groups == 0 && out_channels % groups == 0) return;
  throw ConfigError(fmt::format(
      "{}: groups must divide the channels, found {} groups of {} input and {} output channels",
      layer, groups, in_channels, out_channels));
}

}  // namespace lacuna
