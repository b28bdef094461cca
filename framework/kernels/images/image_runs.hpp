// The contiguous runs of image tensors in any storage order, and the channels they belong to.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lacuna/framework/core/image_slabs.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Floats that share their places' channels: what repeats along a run.
inline constexpr int64_t kRunLanes = 16;
static_assert(kRunLanes == kImageSlabWidth && kRunLanes == kChannelBlock);

/// Images as groups of channels times parts of the batch, each of which is a number of runs. In
/// row-major images and slabs a group is a channel, and in blocks 16 channels, one a lane.
class ImageRuns {
 public:
  explicit ImageRuns(const Shape& shape, Order order)
      : order_(order), slabs_(shape), blocks_(shape) {
    // Images of one pixel lie alike in both, and a run of one float takes longest.
    const bool is_pixel = slabs_.height * slabs_.width == 1;
    if (order == Order::RowMajor && is_pixel && slabs_.channels % kRunLanes == 0) {
      order_ = Order::ChannelBlocks;
    }
  }

  bool has_channel_lanes() const { return order_ == Order::ChannelBlocks; }
  int64_t groups() const { return has_channel_lanes() ? blocks_.blocks() : slabs_.channels; }
  /// Examples, or slabs of them.
  int64_t parts() const { return order_ == Order::ImageSlabs ? slabs_.slabs() : slabs_.batch; }
  /// Lanes of a part's runs that hold anything: fewer in the last slab, and in the last block.
  int64_t lanes(int64_t group, int64_t part) const {
    if (order_ == Order::ImageSlabs) return std::min(kRunLanes, slabs_.batch - part * kRunLanes);
    if (has_channel_lanes()) return std::min(kRunLanes, slabs_.channels - group * kRunLanes);
    return kRunLanes;
  }
  /// Values of a channel.
  int64_t values_of_channel() const { return slabs_.batch * slabs_.height * slabs_.width; }
  int64_t channels() const { return slabs_.channels; }

  /// Calls `visit(first float, floats)` for each run.
  template <class Visit>
  void for_each(int64_t group, int64_t part, const Visit& visit) const {
    const int64_t pixels = slabs_.height * slabs_.width;
    if (order_ == Order::RowMajor) return visit((part * slabs_.channels + group) * pixels, pixels);
    if (has_channel_lanes()) return visit(blocks_.block(part, group, 0), pixels * kRunLanes);
    for (int64_t row = 0; row < slabs_.height; ++row) {
      visit(slabs_.line(part, group, row, 0), slabs_.width * kRunLanes);
    }
  }

 private:
  Order order_;
  ImageSlabs slabs_;
  ChannelBlocks blocks_;
};

/// Where `size` examples or slabs are cut for tasks: as many as give work to threads, whatever
/// their number.
inline int64_t task_parts(const ImageRuns& runs) {
  constexpr int64_t kTasks = 16;
  return std::clamp<int64_t>((kTasks + runs.groups() - 1) / std::max<int64_t>(runs.groups(), 1), 1,
                             std::max<int64_t>(runs.parts(), 1));
}

}  // namespace lacuna
