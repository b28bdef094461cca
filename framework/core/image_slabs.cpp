#include "lacuna/framework/core/image_slabs.h"

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

void require_images(const Shape& shape) {
  if (shape.rank() == 4) return;
  throw ShapeError("images are [batch, channels, height, width], found the shape " +
                   shape.to_string());
}

}  // namespace

ImageSlabs::ImageSlabs(const Shape& shape) {
  require_images(shape);
  batch = shape[0], channels = shape[1], height = shape[2], width = shape[3];
}

ChannelBlocks::ChannelBlocks(const Shape& shape) {
  require_images(shape);
  batch = shape[0], channels = shape[1], pixels = shape[2] * shape[3];
}

}  // namespace lacuna
