// Images of sizes around a slab and a block of channels, in every storage order that kernels take.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna::test {

/// One thread for as long as it lives: loops over many small sizes would wait for threads longer
/// than they compute.
class OneThread {
 public:
  OneThread() : before_(num_threads()) { set_num_threads(1); }
  ~OneThread() { set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

inline constexpr Order kImageOrders[] = {Order::RowMajor, Order::ImageSlabs, Order::ChannelBlocks};

inline std::vector<Shape> image_shapes() {
  std::vector<Shape> all;
  for (const int64_t batch : {1, 15, 16, 17}) {
    for (const int64_t channels : {1, 3, 16, 18}) {
      for (const auto& [height, width] : {std::pair{1, 1}, {3, 5}, {1, 16}}) {
        all.push_back({batch, channels, height, width});
      }
    }
  }
  all.push_back({33, 32, 6, 7});
  all.push_back({48, 33, 1, 1});
  return all;
}

/// Calls `visit(flat index, channel)` for each element in row-major order.
template <class Visit>
void for_each_element(const Shape& shape, const Visit& visit) {
  const int64_t pixels = shape[2] * shape[3], channels = shape[1], count = shape.numel();
  for (int64_t flat = 0; flat < count; ++flat) {
    visit(static_cast<size_t>(flat), static_cast<size_t>(flat / pixels % channels));
  }
}

/// Examples that are none and channels that are none hold what kernels have left there: here NaN.
/// Borders of image slabs are zero, as always.
inline Tensor with_dirty_padding(const Tensor& rows, Order order) {
  Tensor stored = rows.to(order);
  const Shape& shape = stored.shape();
  std::span<float> data = stored.mutable_storage();
  if (order == Order::ImageSlabs) {
    const ImageSlabs at(shape);
    for (int64_t example = shape[0]; example < at.slabs() * kImageSlabWidth; ++example) {
      for (int64_t pixel = 0; pixel < shape[1] * shape[2] * shape[3]; ++pixel) {
        const int64_t plane = shape[2] * shape[3], in_plane = pixel % plane;
        data[static_cast<size_t>(
            at.pixel(example, pixel / plane, in_plane / shape[3], in_plane % shape[3]))] = NAN;
      }
    }
  } else if (order == Order::ChannelBlocks) {
    const ChannelBlocks at(shape);
    for (int64_t example = 0; example < shape[0]; ++example) {
      for (int64_t channel = shape[1]; channel < at.blocks() * kChannelBlock; ++channel) {
        for (int64_t pixel = 0; pixel < at.pixels; ++pixel) {
          data[static_cast<size_t>(at.element(example, channel, pixel))] = NAN;
        }
      }
    }
  }
  return stored;
}

/// Whether the lines between rows and planes of image slabs are zero for the examples that exist;
/// convolutions read them. True in other orders.
inline bool has_zero_borders(const Tensor& images) {
  if (images.order() != Order::ImageSlabs) return true;
  Tensor cleared = images.clone();
  cleared.clear_padding();
  const ImageSlabs at(images.shape());
  const int64_t slab = at.slab_lines() * kImageSlabWidth;
  const std::span<const float> stored = images.storage(), zeroed = cleared.storage();
  for (size_t place = 0; place < stored.size(); ++place) {
    const auto i = static_cast<int64_t>(place);
    const bool exists = i / slab * kImageSlabWidth + i % kImageSlabWidth < at.batch;
    const float found = stored[place], kept = zeroed[place];
    if (exists && found != kept && !std::isnan(kept)) return false;
  }
  return true;
}

}  // namespace lacuna::test
