// A line of image slabs has one pixel of 16 examples, a line of channel blocks one pixel of 16
// channels: the conversions transpose such lines.
#include "lacuna/framework/kernels/pointwise/reorder_images.hpp"

#include <algorithm>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

constexpr int64_t kLine = kImageSlabWidth;
static_assert(kImageSlabWidth == kChannelBlock);

// Converts rows of 16 examples, pixel by pixel, between row-major images and slabs.
void rows_and_slabs(const Tensor& from, Tensor& to) {
  const bool into_slabs = to.order() == Order::ImageSlabs;
  const ImageSlabs images(from.shape());
  const float* source = from.data(from.order());
  float* target = to.mutable_data(to.order());
  const int64_t example = images.channels * images.height * images.width;
  parallel_blocks(images.slabs() * images.channels, [&](int64_t task) {
    const int64_t slab = task / images.channels, channel = task % images.channels;
    const int64_t present = std::min(kLine, images.batch - slab * kLine);
    for (int64_t row = 0; row < images.height; ++row) {
      const int64_t flat = slab * kLine * example + (channel * images.height + row) * images.width;
      const int64_t line = images.line(slab, channel, row, 0);
      if (into_slabs) {
        transposition()(source + flat, example, target + line, kLine, present, images.width);
      } else {
        transposition()(source + line, kLine, target + flat, example, images.width, present);
      }
    }
  });
}

void rows_and_blocks(const Tensor& from, Tensor& to) {
  const bool into_blocks = to.order() == Order::ChannelBlocks;
  const ChannelBlocks images(from.shape());
  const float* source = from.data(from.order());
  float* target = to.mutable_data(to.order());
  parallel_blocks(images.batch * images.blocks(), [&](int64_t task) {
    const int64_t example = task / images.blocks(), block = task % images.blocks();
    const int64_t present = std::min(kLine, images.channels - block * kLine);
    const int64_t flat = (example * images.channels + block * kLine) * images.pixels;
    const int64_t line = images.block(example, block, 0);
    if (into_blocks) {
      transposition()(source + flat, images.pixels, target + line, kLine, present, images.pixels);
    } else {
      transposition()(source + line, kLine, target + flat, images.pixels, images.pixels, present);
    }
  });
}

void blocks_and_slabs(const Tensor& from, Tensor& to) {
  const bool into_slabs = to.order() == Order::ImageSlabs;
  const ImageSlabs slabs(from.shape());
  const ChannelBlocks blocks(from.shape());
  const float* source = from.data(from.order());
  float* target = to.mutable_data(to.order());
  const int64_t example = blocks.block(1, 0, 0), plane = slabs.plane_lines() * kLine;
  parallel_blocks(slabs.slabs() * blocks.blocks(), [&](int64_t task) {
    const int64_t slab = task / blocks.blocks(), block = task % blocks.blocks();
    const int64_t examples = std::min(kLine, slabs.batch - slab * kLine);
    const int64_t channels = std::min(kLine, slabs.channels - block * kLine);
    for (int64_t row = 0; row < slabs.height; ++row) {
      for (int64_t column = 0; column < slabs.width; ++column) {
        const int64_t in_slab = slabs.line(slab, block * kLine, row, column);
        const int64_t in_block = blocks.block(slab * kLine, block, row * slabs.width + column);
        if (into_slabs) {
          transposition()(source + in_block, example, target + in_slab, plane, examples, channels);
        } else {
          transposition()(source + in_slab, plane, target + in_block, example, channels, examples);
        }
      }
    }
  });
}

}  // namespace

Tensor reordered_images(const Tensor& tensor, Order order) {
  if (tensor.order() == Order::BatchSlabs || order == Order::BatchSlabs) {
    return reordered(reordered(tensor, Order::RowMajor), order);
  }
  Tensor converted = Tensor::empty(tensor.shape(), order);
  if (tensor.numel() == 0) return converted;
  const bool has_rows = tensor.order() == Order::RowMajor || order == Order::RowMajor;
  const bool has_slabs = tensor.order() == Order::ImageSlabs || order == Order::ImageSlabs;
  (!has_rows ? blocks_and_slabs : has_slabs ? rows_and_slabs : rows_and_blocks)(tensor, converted);
  return converted;
}

}  // namespace lacuna
