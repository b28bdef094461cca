#include "lacuna/framework/core/image_slabs.hpp"

#include "lacuna/framework/core/error.h"

namespace lacuna {

Shape image_shape(const Shape& shape) {
  if (shape.rank() == 4) return shape;
  if (shape.rank() == 3) return {shape[0], shape[1], 1, shape[2]};
  throw ShapeError(
      "images are [batch, channels, height, width] or [batch, channels, length], found the shape " +
      shape.to_string());
}

ImageSlabs::ImageSlabs(const Shape& shape) {
  const Shape images = image_shape(shape);
  batch = images[0], channels = images[1], height = images[2], width = images[3];
}

ChannelBlocks::ChannelBlocks(const Shape& shape) {
  const Shape images = image_shape(shape);
  batch = images[0], channels = images[1], pixels = images[2] * images[3];
}

}  // namespace lacuna
