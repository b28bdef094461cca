// Options that several layers read alike: sizes that are the input's where they are left out.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/core/shape.h"

namespace lacuna {

/// The size of the last dimension: given under `key`, or else that of the input. *Errors:*
/// ShapeError where the two differ.
int64_t read_features(const Config& options, const char* key, const Shape& input);

/// A number for both sides, or [height, width], each of at least `least`. *Errors:* ConfigError.
Extent read_extent(const Config& options, const char* key, Extent otherwise, int64_t least);

/// The number of channels of images [channels, height, width]: given under `key`, or the input's.
/// *Errors:* ShapeError where the two differ, or the input is no image.
int64_t read_channels(const Config& options, const char* key, const Shape& input);

}  // namespace lacuna
