// The contiguous runs of image tensors in any storage order, and their channels.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// The number of floats after which the channels repeat along a run.
inline constexpr int64_t kRunLanes = 16;
static_assert(kRunLanes == kImageSlabWidth && kRunLanes == kChannelBlock);

/// Coefficients of 16 lanes, and their sums.
using Lanes = std::array<float, kRunLanes>;
using LaneSums = std::array<double, kRunLanes>;

/// Images as groups of channels times parts of the batch. In row-major images and slabs a group is
/// one channel, in blocks it is 16 channels, one per lane.
class ImageRuns {
 public:
  explicit ImageRuns(const Shape& shape, Order order)
      : order_(order), slabs_(shape), blocks_(shape) {
    // Images of one pixel are equal in both orders, and runs of one float are slowest.
    const bool is_pixel = slabs_.height * slabs_.width == 1;
    if (order == Order::RowMajor && is_pixel && slabs_.channels % kRunLanes == 0) {
      order_ = Order::ChannelBlocks;
    }
  }

  bool has_channel_lanes() const { return order_ == Order::ChannelBlocks; }
  int64_t groups() const { return has_channel_lanes() ? blocks_.blocks() : slabs_.channels; }
  /// The number of examples, or of slabs of them.
  int64_t parts() const { return order_ == Order::ImageSlabs ? slabs_.slabs() : slabs_.batch; }
  /// Lanes of a part's runs that hold values: fewer in the last slab, and in the last block.
  int64_t lanes(int64_t group, int64_t part) const {
    if (order_ == Order::ImageSlabs) return std::min(kRunLanes, slabs_.batch - part * kRunLanes);
    if (has_channel_lanes()) return std::min(kRunLanes, slabs_.channels - group * kRunLanes);
    return kRunLanes;
  }
  /// The channel of a group's lane; in the last block it may not exist.
  int64_t channel(int64_t group, int64_t lane) const {
    return has_channel_lanes() ? group * kRunLanes + lane : group;
  }
  /// Values of a channel.
  int64_t values_of_channel() const { return slabs_.batch * slabs_.height * slabs_.width; }
  int64_t channels() const { return slabs_.channels; }
  /// Bytes for one bit per float; each run begins with a new byte.
  int64_t bit_bytes() const {
    if (order_ == Order::RowMajor) return slabs_.batch * slabs_.channels * plane_bytes();
    return (order_ == Order::ImageSlabs ? slabs_.size() : blocks_.size()) / 8;
  }

  /// Rows of consecutive floats.
  struct Run {
    int64_t begin, count;  // the first row's
    int64_t bits;          // the byte of the first float's bit
    int64_t rows = 1;      // in slabs more, with a line of zeros between them
    int64_t row_step = 0;  // from a row to the next, in floats
  };
  /// A group's floats of a part.
  Run run(int64_t group, int64_t part) const {
    const int64_t pixels = slabs_.height * slabs_.width;
    if (order_ == Order::RowMajor) {
      const int64_t plane = part * slabs_.channels + group;
      return {.begin = plane * pixels, .count = pixels, .bits = plane * plane_bytes()};
    }
    if (has_channel_lanes()) {
      const int64_t begin = blocks_.block(part, group, 0);
      return {.begin = begin, .count = pixels * kRunLanes, .bits = begin / 8};
    }
    const int64_t begin = slabs_.line(part, group, 0, 0);
    return {.begin = begin,
            .count = slabs_.width * kRunLanes,
            .bits = begin / 8,
            .rows = slabs_.height,
            .row_step = slabs_.row_lines() * kRunLanes};
  }
  /// Calls `visit(first float, number of floats)` for each row of a run.
  template <class Visit>
  void for_each_row(int64_t group, int64_t part, const Visit& visit) const {
    const Run all = run(group, part);
    for (int64_t row = 0; row < all.rows; ++row) {
      visit(all.begin + row * all.row_step, all.count);
    }
  }

 private:
  int64_t plane_bytes() const {  // whole vectors
    return (slabs_.height * slabs_.width + kRunLanes - 1) / kRunLanes * (kRunLanes / 8);
  }

  Order order_;
  ImageSlabs slabs_;
  ChannelBlocks blocks_;
};

}  // namespace lacuna
