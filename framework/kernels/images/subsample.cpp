#include <algorithm>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/images/pooling.hpp"

namespace lacuna {
namespace {

// The places of pixels: floats of one example, of 16 examples, or of up to 16 channels.
class Pixels {
 public:
  Pixels(const Shape& shape, Order order)
      : slabs_(shape), blocks_(shape), order_(order), width_(shape[3]), plane_(shape[2] * width_) {}

  int64_t parts() const { return order_ == Order::ImageSlabs ? slabs_.slabs() : slabs_.batch; }
  int64_t channels() const { return slabs_.channels; }
  int64_t height() const { return slabs_.height; }
  int64_t width() const { return width_; }
  // The number of consecutive channels in memory from this one on.
  int64_t run(int64_t channel) const {
    if (order_ != Order::ChannelBlocks) return 1;
    return std::min(kChannelBlock - channel % kChannelBlock, channels() - channel);
  }
  // Floats of a pixel with this number of channels.
  int64_t floats(int64_t run) const { return order_ == Order::ImageSlabs ? kImageSlabWidth : run; }
  // The distance from a pixel to the next one of its row.
  int64_t step() const { return order_ == Order::RowMajor ? 1 : kChannelBlock; }
  int64_t at(int64_t part, int64_t channel, int64_t row) const {
    if (order_ == Order::ImageSlabs) return slabs_.line(part, channel, row, 0);
    if (order_ == Order::ChannelBlocks) return blocks_.element(part, channel, row * width_);
    return (part * channels() + channel) * plane_ + row * width_;
  }

 private:
  static_assert(kChannelBlock == kImageSlabWidth);
  ImageSlabs slabs_;
  ChannelBlocks blocks_;
  Order order_;
  int64_t width_, plane_;
};

// Calls `visit(part, channel, run of channels)` for all channels of `of`, one task per part. In
// `other`, the run is contiguous `shift` channels later, or does not exist.
template <class Visit>
void for_each_run(const Pixels& of, const Pixels& other, int64_t shift, const Visit& visit) {
  parallel_blocks(of.parts(), [&](int64_t part) {
    for (int64_t channel = 0, run = 0; channel < of.channels(); channel += run) {
      const int64_t there = channel + shift;
      run = of.run(channel);
      if (there < 0) {
        run = std::min(run, -there);
      } else if (there < other.channels()) {
        run = std::min(run, other.run(there));
      }
      visit(part, channel, run);
    }
  });
}

void copy_pixels(const float* from, int64_t from_step, float* to, int64_t to_step, int64_t count,
                 int64_t floats) {
  for (int64_t i = 0; i < count; ++i) {
    if (floats == kImageSlabWidth) {
      std::copy_n(from + i * from_step, kImageSlabWidth, to + i * to_step);
    } else {
      std::copy_n(from + i * from_step, floats, to + i * to_step);
    }
  }
}

void clear_pixels(float* to, int64_t step, int64_t count, int64_t floats) {
  if (step == floats) {
    std::fill_n(to, count * step, 0.0f);
    return;
  }
  for (int64_t i = 0; i < count; ++i) std::fill_n(to + i * step, floats, 0.0f);
}

}  // namespace

Tensor subsample_pad(const Tensor& x, Extent stride, int64_t channels, int64_t before) {
  const Shape& s = x.shape();
  const Shape shape{s[0], channels, (s[2] + stride.height - 1) / stride.height,
                    (s[3] + stride.width - 1) / stride.width};
  Tensor y = Tensor::empty(shape, x.order());
  const float* from = x.data(x.order());
  float* into = y.mutable_data(x.order());
  const Pixels large(s, x.order()), small(shape, x.order());
  for_each_run(small, large, -before, [&](int64_t part, int64_t channel, int64_t run) {
    const int64_t source = channel - before, floats = small.floats(run);
    const bool is_there = source >= 0 && source < large.channels();
    for (int64_t row = 0; row < small.height(); ++row) {
      float* to = into + small.at(part, channel, row);
      if (is_there) {
        copy_pixels(from + large.at(part, source, row * stride.height), stride.width * large.step(),
                    to, small.step(), small.width(), floats);
      } else {
        clear_pixels(to, small.step(), small.width(), floats);
      }
    }
  });
  return y;
}

Tensor subsample_pad_gradient(const Tensor& dy, Extent stride, int64_t before, const Shape& shape) {
  Tensor dx = Tensor::empty(shape, dy.order());
  const float* from = dy.data(dy.order());
  float* into = dx.mutable_data(dy.order());
  const Pixels large(shape, dy.order()), small(dy.shape(), dy.order());
  for_each_run(large, small, before, [&](int64_t part, int64_t channel, int64_t run) {
    const int64_t floats = large.floats(run);
    for (int64_t row = 0; row < large.height(); ++row) {
      float* to = into + large.at(part, channel, row);
      clear_pixels(to, large.step(), large.width(), floats);
      if (row % stride.height != 0) continue;
      copy_pixels(from + small.at(part, channel + before, row / stride.height), small.step(), to,
                  stride.width * large.step(), small.width(), floats);
    }
  });
  return dx;
}

}  // namespace lacuna
