// Plain loops, which take a small part of a network's time. One task per plane.
#include "lacuna/framework/kernels/images/pooling.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/images/image_runs.hpp"

namespace lacuna {
namespace {

// Elements along one side of a kernel.
struct Span {
  int64_t first, end;
};

// The elements of a kernel, beginning at `begin`, that are within an image of `size`. Padding,
// which may be far larger than the image, is skipped without a loop.
Span inside(int64_t begin, int64_t kernel, int64_t dilation, int64_t size) {
  const int64_t first = begin >= 0 ? 0 : (dilation - 1 - begin) / dilation;
  const int64_t end = begin >= size ? 0 : (size - 1 - begin) / dilation + 1;
  return {first, std::min(end, kernel)};
}

// A window's sizes on images of one shape.
struct Places {
  Places(const Shape& shape, const Window& window_)
      : window(window_),
        image{shape[2], shape[3]},
        output(window_.output(image, "pooling")),
        planes(shape[0] * shape[1]) {}

  // Calls `visit(pixel)` for the pixels under the window at a place.
  template <class Visit>
  void for_each_pixel(int64_t place, const Visit& visit) const {
    const int64_t top = place / output.width * window.stride.height - window.padding.height;
    const int64_t left = place % output.width * window.stride.width - window.padding.width;
    const Span rows = inside(top, window.kernel.height, window.dilation.height, image.height);
    const Span columns = inside(left, window.kernel.width, window.dilation.width, image.width);
    for (int64_t ky = rows.first; ky < rows.end; ++ky) {
      const int64_t row = (top + ky * window.dilation.height) * image.width;
      for (int64_t kx = columns.first; kx < columns.end; ++kx) {
        visit(row + left + kx * window.dilation.width);
      }
    }
  }
  int64_t pixels() const { return image.height * image.width; }
  int64_t count() const { return output.height * output.width; }
  Shape output_shape(const Shape& shape) const {
    return {shape[0], shape[1], output.height, output.width};
  }

  Window window;
  Extent image, output;
  int64_t planes;
};

float divisor(const Places& places, int64_t place, CountPadding count) {
  const Extent& kernel = places.window.kernel;
  if (count == CountPadding::Yes) return static_cast<float>(kernel.height * kernel.width);
  int64_t pixels = 0;
  places.for_each_pixel(place, [&](int64_t) { ++pixels; });
  return static_cast<float>(std::max<int64_t>(pixels, 1));
}

}  // namespace

MaxPool max_pool(const Tensor& x, const Window& window) {
  const Places places(x.shape(), window);
  MaxPool pool{Tensor::empty(places.output_shape(x.shape())), {}};
  pool.index.resize(static_cast<size_t>(pool.y.numel()));
  const float* data = x.data();
  float* y = pool.y.mutable_data();
  parallel_blocks(places.planes, [&](int64_t plane) {
    const float* pixels = data + plane * places.pixels();
    for (int64_t place = 0; place < places.count(); ++place) {
      float largest = -std::numeric_limits<float>::infinity();
      int64_t index = -1;
      places.for_each_pixel(place, [&](int64_t pixel) {
        const float value = pixels[pixel];
        if (index >= 0 && !(value > largest) && !std::isnan(value)) return;
        if (index >= 0 && std::isnan(largest)) return;
        largest = value;
        index = pixel;
      });
      const int64_t at = plane * places.count() + place;
      y[at] = largest;
      pool.index[static_cast<size_t>(at)] = static_cast<int32_t>(index);
    }
  });
  return pool;
}

Tensor max_pool_gradient(const Tensor& dy, const std::vector<int32_t>& index, const Shape& shape) {
  Tensor dx = Tensor::zeros(shape);
  const int64_t pixels = shape[2] * shape[3], places = dy.shape()[2] * dy.shape()[3];
  const float* from = dy.data();
  float* into = dx.mutable_data();
  parallel_blocks(shape[0] * shape[1], [&](int64_t plane) {
    for (int64_t place = 0; place < places; ++place) {
      const int64_t at = plane * places + place;
      const int32_t pixel = index[static_cast<size_t>(at)];
      if (pixel >= 0) into[plane * pixels + pixel] += from[at];
    }
  });
  return dx;
}

Tensor avg_pool(const Tensor& x, const Window& window, CountPadding count) {
  const Places places(x.shape(), window);
  Tensor y = Tensor::empty(places.output_shape(x.shape()));
  const float* data = x.data();
  float* into = y.mutable_data();
  parallel_blocks(places.planes, [&](int64_t plane) {
    for (int64_t place = 0; place < places.count(); ++place) {
      float sum = 0.0f;
      places.for_each_pixel(place,
                            [&](int64_t pixel) { sum += data[plane * places.pixels() + pixel]; });
      into[plane * places.count() + place] = sum / divisor(places, place, count);
    }
  });
  return y;
}

Tensor avg_pool_gradient(const Tensor& dy, const Window& window, CountPadding count,
                         const Shape& shape) {
  const Places places(shape, window);
  Tensor dx = Tensor::zeros(shape);
  const float* from = dy.data();
  float* into = dx.mutable_data();
  parallel_blocks(places.planes, [&](int64_t plane) {
    for (int64_t place = 0; place < places.count(); ++place) {
      const float share = from[plane * places.count() + place] / divisor(places, place, count);
      places.for_each_pixel(place,
                            [&](int64_t pixel) { into[plane * places.pixels() + pixel] += share; });
    }
  });
  return dx;
}

Tensor plane_means(const Tensor& x) {
  const ImageRuns runs(x.shape(), x.order());
  const int64_t channels = x.shape()[1], batch = x.shape()[0];
  const float* data = x.data(x.order());
  Tensor y = Tensor::empty(Shape{batch, channels});
  float* into = y.mutable_data();
  const auto pixels = static_cast<double>(x.shape()[2] * x.shape()[3]);
  const bool is_slabs = x.order() == Order::ImageSlabs;
  parallel_blocks(runs.parts(), [&](int64_t part) {
    for (int64_t group = 0; group < runs.groups(); ++group) {
      double sums[kRunLanes] = {};
      runs.for_each_row(group, part, [&](int64_t begin, int64_t count) {
        const float* row = data + begin;
        for (; count >= kRunLanes; count -= kRunLanes, row += kRunLanes) {
          for (int64_t i = 0; i < kRunLanes; ++i) sums[i] += static_cast<double>(row[i]);
        }
        for (int64_t i = 0; i < count; ++i) sums[i] += static_cast<double>(row[i]);
      });
      if (is_slabs || runs.has_channel_lanes()) {
        for (int64_t i = 0; i < runs.lanes(group, part); ++i) {
          const int64_t at = is_slabs ? (part * kRunLanes + i) * channels + group
                                      : part * channels + group * kRunLanes + i;
          into[at] = static_cast<float>(sums[i] / pixels);
        }
      } else {
        double sum = 0.0;
        for (const double lane : sums) sum += lane;
        into[part * channels + group] = static_cast<float>(sum / pixels);
      }
    }
  });
  return y;
}

Tensor plane_means_gradient(const Tensor& dy, const Shape& shape, Order order) {
  const ImageRuns runs(shape, order);
  Tensor dx = Tensor::empty(shape, order);
  const int64_t channels = shape[1];
  const float* from = dy.data();
  float* into = dx.mutable_data(order);
  const float share = 1.0f / static_cast<float>(shape[2] * shape[3]);
  const bool is_slabs = order == Order::ImageSlabs;
  parallel_blocks(runs.parts(), [&](int64_t part) {
    for (int64_t group = 0; group < runs.groups(); ++group) {
      float lanes[kRunLanes] = {};
      if (is_slabs || runs.has_channel_lanes()) {
        for (int64_t i = 0; i < runs.lanes(group, part); ++i) {
          lanes[i] = share * from[is_slabs ? (part * kRunLanes + i) * channels + group
                                           : part * channels + group * kRunLanes + i];
        }
      } else {
        std::fill_n(lanes, kRunLanes, share * from[part * channels + group]);
      }
      runs.for_each_row(group, part, [&](int64_t begin, int64_t count) {
        float* row = into + begin;
        for (; count >= kRunLanes; count -= kRunLanes, row += kRunLanes) {
          std::memcpy(row, lanes, sizeof(lanes));
        }
        std::copy_n(lanes, count, row);
      });
    }
  });
  return dx;
}

}  // namespace lacuna
