#include <algorithm>
#include <cstring>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/images/pooling.hpp"

namespace lacuna {
namespace {

// The places of pixels in other orders than slabs: floats of an example, or of up to 16 channels.
class Pixels {
 public:
  Pixels(const Shape& shape, Order order)
      : blocks_(shape), order_(order), height_(shape[2]), width_(shape[3]) {}

  int64_t parts() const { return blocks_.batch; }
  int64_t channels() const { return blocks_.channels; }
  int64_t height() const { return height_; }
  int64_t width() const { return width_; }
  // The number of consecutive channels in memory from this one on.
  int64_t run(int64_t channel) const {
    if (order_ != Order::ChannelBlocks) return 1;
    return std::min(kChannelBlock - channel % kChannelBlock, channels() - channel);
  }
  // The distance from a pixel to the next one of its row.
  int64_t step() const { return order_ == Order::RowMajor ? 1 : kChannelBlock; }
  int64_t at(int64_t part, int64_t channel, int64_t row) const {
    if (order_ == Order::ChannelBlocks) return blocks_.element(part, channel, row * width_);
    return ((part * channels() + channel) * height_ + row) * width_;
  }

 private:
  ChannelBlocks blocks_;
  Order order_;
  int64_t height_, width_;
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
  for (int64_t i = 0; i < count; ++i) std::copy_n(from + i * from_step, floats, to + i * to_step);
}

void clear_pixels(float* to, int64_t step, int64_t count, int64_t floats) {
  if (step == floats) {
    std::fill_n(to, count * step, 0.0f);
    return;
  }
  for (int64_t i = 0; i < count; ++i) std::fill_n(to + i * step, floats, 0.0f);
}

// A line of slabs: its size is known, so no call is made for it.
void copy_line(const float* from, float* to) {
  std::memcpy(to, from, kImageSlabWidth * sizeof(float));
}

// As below, on image slabs, whose rows end with a line of zeros.
void subsample_slabs(const float* from, const ImageSlabs& large, Extent stride, int64_t before,
                     float* into, const ImageSlabs& small) {
  const int64_t row_floats = small.row_lines() * kImageSlabWidth;
  parallel_blocks(small.slabs(), [&](int64_t slab) {
    for (int64_t channel = 0; channel < small.channels; ++channel) {
      const int64_t source = channel - before;
      float* to = into + small.line(slab, channel, 0, 0);
      if (source < 0 || source >= large.channels) {
        std::fill_n(to, small.height * row_floats, 0.0f);
        continue;
      }
      for (int64_t row = 0; row < small.height; ++row) {
        const float* line = from + large.line(slab, source, row * stride.height, 0);
        for (int64_t i = 0; i < small.width; ++i, to += kImageSlabWidth) {
          copy_line(line + i * stride.width * kImageSlabWidth, to);
        }
        to = std::fill_n(to, kImageSlabWidth, 0.0f);
      }
    }
  });
}

void subsample_slabs_gradient(const float* from, const ImageSlabs& small, Extent stride,
                              int64_t before, float* into, const ImageSlabs& large) {
  const int64_t row_floats = large.row_lines() * kImageSlabWidth;
  parallel_blocks(large.slabs(), [&](int64_t slab) {
    for (int64_t channel = 0; channel < large.channels; ++channel) {
      float* to = into + large.line(slab, channel, 0, 0);
      for (int64_t row = 0; row < large.height; ++row, to += row_floats) {
        if (row % stride.height != 0) {
          std::fill_n(to, row_floats, 0.0f);
          continue;
        }
        const float* line = from + small.line(slab, channel + before, row / stride.height, 0);
        for (int64_t i = 0; i <= large.width; ++i) {
          const bool is_there = i % stride.width == 0 && i < large.width;
          if (is_there) {
            copy_line(line + i / stride.width * kImageSlabWidth, to + i * kImageSlabWidth);
          } else {
            std::fill_n(to + i * kImageSlabWidth, kImageSlabWidth, 0.0f);
          }
        }
      }
    }
  });
}

}  // namespace

Tensor subsample_pad(const Tensor& x, Extent stride, int64_t channels, int64_t before) {
  const Shape& s = x.shape();
  const Shape shape{s[0], channels, (s[2] + stride.height - 1) / stride.height,
                    (s[3] + stride.width - 1) / stride.width};
  Tensor y = Tensor::empty(shape, x.order(), Tensor::Padding::ZeroButBetweenRows);
  const float* from = x.data(x.order());
  float* into = y.mutable_data(x.order());
  if (x.order() == Order::ImageSlabs) {
    subsample_slabs(from, ImageSlabs(s), stride, before, into, ImageSlabs(shape));
    return y;
  }
  const Pixels large(s, x.order()), small(shape, x.order());
  for_each_run(small, large, -before, [&](int64_t part, int64_t channel, int64_t run) {
    const int64_t source = channel - before;
    const bool is_there = source >= 0 && source < large.channels();
    for (int64_t row = 0; row < small.height(); ++row) {
      float* to = into + small.at(part, channel, row);
      if (is_there) {
        copy_pixels(from + large.at(part, source, row * stride.height), stride.width * large.step(),
                    to, small.step(), small.width(), run);
      } else {
        clear_pixels(to, small.step(), small.width(), run);
      }
    }
  });
  return y;
}

Tensor subsample_pad_gradient(const Tensor& dy, Extent stride, int64_t before, const Shape& shape) {
  Tensor dx = Tensor::empty(shape, dy.order(), Tensor::Padding::ZeroButBetweenRows);
  const float* from = dy.data(dy.order());
  float* into = dx.mutable_data(dy.order());
  if (dy.order() == Order::ImageSlabs) {
    subsample_slabs_gradient(from, ImageSlabs(dy.shape()), stride, before, into, ImageSlabs(shape));
    return dx;
  }
  const Pixels large(shape, dy.order()), small(dy.shape(), dy.order());
  for_each_run(large, small, before, [&](int64_t part, int64_t channel, int64_t run) {
    for (int64_t row = 0; row < large.height(); ++row) {
      float* to = into + large.at(part, channel, row);
      clear_pixels(to, large.step(), large.width(), run);
      if (row % stride.height != 0) continue;
      copy_pixels(from + small.at(part, channel + before, row / stride.height), small.step(), to,
                  stride.width * large.step(), small.width(), run);
    }
  });
  return dx;
}

}  // namespace lacuna
