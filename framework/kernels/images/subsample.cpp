#include <algorithm>
#include <cstring>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/image_slabs.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/images/pooling.h"

namespace lacuna {
namespace {

// The pixels of a tensor as pieces of floats: single ones, or lines of 16 examples.
struct Pieces {
  explicit Pieces(const Shape& shape, Order order)
      : images(shape), is_slabs(order == Order::ImageSlabs) {
    if (order == Order::ChannelBlocks) {
      throw StateError("subsample_pad takes row-major images or image slabs, found channel blocks");
    }
  }
  int64_t parts() const { return is_slabs ? images.slabs() : images.batch; }
  int64_t floats() const { return is_slabs ? kImageSlabWidth : 1; }
  int64_t at(int64_t part, int64_t channel, int64_t row, int64_t column) const {
    if (is_slabs) return images.line(part, channel, row, column);
    return ((part * images.channels + channel) * images.height + row) * images.width + column;
  }

  ImageSlabs images;
  bool is_slabs;
};

// Calls `visit(place in the large images, place in the small ones, floats)` for every pixel that is
// in both.
template <class Visit>
void for_each_kept(const Pieces& large, const Pieces& small, Extent stride, int64_t before,
                   const Visit& visit) {
  parallel_blocks(large.parts(), [&](int64_t part) {
    for (int64_t channel = 0; channel < large.images.channels; ++channel) {
      for (int64_t row = 0; row < small.images.height; ++row) {
        for (int64_t column = 0; column < small.images.width; ++column) {
          visit(large.at(part, channel, row * stride.height, column * stride.width),
                small.at(part, channel + before, row, column), large.floats());
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
  Tensor y = Tensor::zeros(shape, x.order());
  const float* from = x.data(x.order());
  float* into = y.mutable_data(x.order());
  for_each_kept(Pieces(s, x.order()), Pieces(shape, x.order()), stride, before,
                [&](int64_t large, int64_t small, int64_t floats) {
                  std::copy_n(from + large, floats, into + small);
                });
  return y;
}

Tensor subsample_pad_gradient(const Tensor& dy, Extent stride, int64_t before, const Shape& shape) {
  Tensor dx = Tensor::zeros(shape, dy.order());
  const float* from = dy.data(dy.order());
  float* into = dx.mutable_data(dy.order());
  for_each_kept(Pieces(shape, dy.order()), Pieces(dy.shape(), dy.order()), stride, before,
                [&](int64_t large, int64_t small, int64_t floats) {
                  std::copy_n(from + small, floats, into + large);
                });
  return dx;
}

}  // namespace lacuna
