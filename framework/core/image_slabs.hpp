// ImageSlabs: where the pixels of a batch of images lie in the storage order of sparse
// convolutions.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/shape.h"

namespace lacuna {

/// The shape of images: [batch, channels, height, width] as it is, and a height of 1 in [batch,
/// channels, length]. *Errors:* ShapeError where it is neither.
Shape image_shape(const Shape& shape);

/// Examples in a slab of images: 16 floats are one cache line, one AVX-512 vector.
inline constexpr int64_t kImageSlabWidth = 16;
inline constexpr int64_t kImageLineBytes = kImageSlabWidth * static_cast<int64_t>(sizeof(float));

/// [batch/16][channels][height + 1][width + 1][16]: a pixel of 16 examples is a line of 64 bytes,
/// and a neighbouring pixel is a line at a fixed distance, so that a convolution is a linear
/// product whose rows are shifted. One zero line ends each row and one zero row each plane; they
/// are the border on both sides, the right one of a row being the left one of the next. Planes have
/// an odd number of lines, so that channels spread over the sets of a cache. A slab begins with the
/// border above its first plane.
struct ImageSlabs {
  int64_t batch = 0, channels = 0, height = 0, width = 0;

  ImageSlabs() = default;
  /// *Errors:* as of image_shape.
  explicit ImageSlabs(const Shape& shape);

  int64_t slabs() const { return (batch + kImageSlabWidth - 1) / kImageSlabWidth; }
  int64_t row_lines() const { return width + 1; }
  int64_t plane_lines() const { return ((height + 1) * (width + 1)) | 1; }
  /// Lines of a slab before its first pixel.
  int64_t lead_lines() const { return width + 2; }
  int64_t slab_lines() const { return 2 * lead_lines() + channels * plane_lines(); }
  /// Floats of all slabs.
  int64_t size() const { return slabs() * slab_lines() * kImageSlabWidth; }

  /// Where the first example's pixel of a slab is, in floats; the others follow it.
  int64_t line(int64_t slab, int64_t channel, int64_t row, int64_t column) const {
    return (slab * slab_lines() + lead_lines() + channel * plane_lines() + row * row_lines() +
            column) *
           kImageSlabWidth;
  }
  /// Where an example's pixel is, in floats.
  int64_t pixel(int64_t example, int64_t channel, int64_t row, int64_t column) const {
    return line(example / kImageSlabWidth, channel, row, column) + example % kImageSlabWidth;
  }
};

/// Channels of a block of `Order::ChannelBlocks`.
inline constexpr int64_t kChannelBlock = 16;

/// [batch][channels/16][height][width][16]: oneDNN's nChw16c, in which its convolutions run. The
/// last block is padded with zeros.
struct ChannelBlocks {
  int64_t batch = 0, channels = 0, pixels = 0;

  ChannelBlocks() = default;
  /// *Errors:* as of image_shape.
  explicit ChannelBlocks(const Shape& shape);

  int64_t blocks() const { return (channels + kChannelBlock - 1) / kChannelBlock; }
  int64_t size() const { return batch * blocks() * pixels * kChannelBlock; }
  /// Where a pixel of a block's first channel is, in floats.
  int64_t block(int64_t example, int64_t number, int64_t at) const {
    return ((example * blocks() + number) * pixels + at) * kChannelBlock;
  }
  int64_t element(int64_t example, int64_t channel, int64_t at) const {
    return block(example, channel / kChannelBlock, at) + channel % kChannelBlock;
  }
};

}  // namespace lacuna
