#include "lacuna/framework/autograd/ops/pooling.h"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/kernels/images/pooling.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

// Row-major images; sequences become images of height 1.
Tensor rows_of_images(const Tensor& x) {
  return reordered(x, Order::RowMajor).viewed_as(image_shape(x.shape()));
}

// In the form of x: without a height if x has none.
Tensor shaped_as(const Shape& x, const Tensor& images) {
  const Shape& s = images.shape();
  return x.rank() == 3 ? images.viewed_as({s[0], s[1], s[3]}) : images;
}

struct MaxPoolNode final : Node {
  explicit MaxPoolNode(std::vector<int32_t> index_) : index(std::move(index_)) {}
  std::string_view name() const override { return "max_pool2d"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy at the places of the largest
    const Shape& x = inputs()[0].shape();
    return {max_pool_gradient(rows_of_images(dy), index, image_shape(x)).viewed_as(x)};
  }

  std::vector<int32_t> index;
};

struct AvgPoolNode final : Node {
  AvgPoolNode(const Window& window_, CountPadding count_) : window(window_), count(count_) {}
  std::string_view name() const override { return "avg_pool2d"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy / n to each pixel of a window
    const Shape& x = inputs()[0].shape();
    return {avg_pool_gradient(rows_of_images(dy), window, count, image_shape(x)).viewed_as(x)};
  }

  Window window;
  CountPadding count;
};

struct GlobalAveragePoolNode final : Node {
  explicit GlobalAveragePoolNode(Order order_) : order(order_) {}
  std::string_view name() const override { return "global_average_pool"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy / n to each pixel of a plane
    const Shape& x = inputs()[0].shape();
    return {
        plane_means_gradient(reordered(dy, Order::RowMajor), image_shape(x), order).viewed_as(x)};
  }

  Order order;
};

// The tensor's own order, if it is an order of images.
Order order_of_images(const Tensor& x) {
  const bool is_one = x.order() == Order::ImageSlabs || x.order() == Order::ChannelBlocks;
  return is_one ? x.order() : Order::RowMajor;
}

struct SubsamplePadNode final : Node {
  SubsamplePadNode(Extent stride_, int64_t before_) : stride(stride_), before(before_) {}
  std::string_view name() const override { return "subsample_pad"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy at the pixels that were kept
    return {subsample_pad_gradient(reordered(dy, order_of_images(dy)), stride, before,
                                   inputs()[0].shape())};
  }

  Extent stride;
  int64_t before;
};

void require_images(const char* op, const Shape& shape) {
  if (shape.rank() == 4) return;
  throw ShapeError(
      fmt::format("{}: needs [batch, channels, height, width], found {}", op, shape.to_string()));
}

void require_planes(const char* op, const Shape& shape) {
  if (shape.rank() == 3 || shape.rank() == 4) return;
  throw ShapeError(fmt::format(
      "{}: needs [batch, channels, height, width] or [batch, channels, length], found {}", op,
      shape.to_string()));
}

void require_window(const char* op, const Shape& shape, const Window& window) {
  require_planes(op, shape);
  const Shape images = image_shape(shape);
  window.output({images[2], images[3]}, op);
  if (2 * window.padding.height > window.kernel.height ||
      2 * window.padding.width > window.kernel.width) {
    throw ShapeError(fmt::format("{}: padding {} is more than half of the kernel {}", op,
                                 window.padding.to_string(), window.kernel.to_string()));
  }
}

}  // namespace

Variable max_pool2d(const Variable& x, const Window& window) {
  require_window("max_pool2d", x.shape(), window);
  MaxPool pool = max_pool(rows_of_images(x.value()), window);
  return record<MaxPoolNode>(shaped_as(x.shape(), pool.y), {x}, std::move(pool.index));
}

Variable avg_pool2d(const Variable& x, const Window& window, const AvgPoolOptions& options) {
  require_window("avg_pool2d", x.shape(), window);
  const CountPadding count = options.count_include_pad ? CountPadding::Yes : CountPadding::No;
  const Tensor y = avg_pool(rows_of_images(x.value()), window, count);
  return record<AvgPoolNode>(shaped_as(x.shape(), y), {x}, window, count);
}

Variable global_average_pool(const Variable& x) {
  require_planes("global_average_pool", x.shape());
  const Tensor images = is_of_images(x.value().order())
                            ? x.value().viewed_as(image_shape(x.shape()))
                            : rows_of_images(x.value());
  return record<GlobalAveragePoolNode>(plane_means(images), {x}, images.order());
}

Variable subsample_pad(const Variable& x, Extent stride, int64_t channels,
                       std::optional<int64_t> before) {
  require_images("subsample_pad", x.shape());
  const int64_t added = channels - x.shape()[1];
  if (added < 0 || stride.height < 1 || stride.width < 1) {
    throw ShapeError(
        fmt::format("subsample_pad: {} needs a stride of at least 1 and at least as many channels "
                    "as it has, found {} and {}",
                    x.shape().to_string(), stride.to_string(), channels));
  }
  const Tensor images = reordered(x.value(), order_of_images(x.value()));
  const int64_t first = before.value_or(added / 2);
  if (first < 0 || first > added) {
    throw ShapeError(fmt::format(
        "subsample_pad: `before` is {}, but there are {} channels of zeros", first, added));
  }
  Tensor y = lacuna::subsample_pad(images, stride, channels, first);
  return record<SubsamplePadNode>(std::move(y), {x}, stride, first);
}

}  // namespace lacuna
