#include "lacuna/framework/autograd/ops/pooling.h"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/images/pooling.h"
#include "lacuna/framework/kernels/pointwise/reorder.h"

namespace lacuna {
namespace {

struct MaxPoolNode final : Node {
  explicit MaxPoolNode(std::vector<int32_t> index_) : index(std::move(index_)) {}
  std::string_view name() const override { return "max_pool2d"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy at the places of the largest
    return {max_pool_gradient(reordered(dy, Order::RowMajor), index, inputs()[0].shape())};
  }

  std::vector<int32_t> index;
};

struct AvgPoolNode final : Node {
  AvgPoolNode(const Window& window_, CountPadding count_) : window(window_), count(count_) {}
  std::string_view name() const override { return "avg_pool2d"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy / n to each pixel of a window
    return {avg_pool_gradient(reordered(dy, Order::RowMajor), window, count, inputs()[0].shape())};
  }

  Window window;
  CountPadding count;
};

struct GlobalAveragePoolNode final : Node {
  explicit GlobalAveragePoolNode(Order order_) : order(order_) {}
  std::string_view name() const override { return "global_average_pool"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy / n to each pixel of a plane
    return {plane_means_gradient(reordered(dy, Order::RowMajor), inputs()[0].shape(), order)};
  }

  Order order;
};

struct SubsamplePadNode final : Node {
  SubsamplePadNode(Extent stride_, int64_t before_) : stride(stride_), before(before_) {}
  std::string_view name() const override { return "subsample_pad"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy at the pixels that were kept
    const Order order = dy.order() == Order::ImageSlabs ? dy.order() : Order::RowMajor;
    return {subsample_pad_gradient(reordered(dy, order), stride, before, inputs()[0].shape())};
  }

  Extent stride;
  int64_t before;
};

void require_images(const char* op, const Shape& shape) {
  if (shape.rank() == 4) return;
  throw ShapeError(
      fmt::format("{}: needs [batch, channels, height, width], found {}", op, shape.to_string()));
}

void require_window(const char* op, const Shape& shape, const Window& window) {
  require_images(op, shape);
  window.output({shape[2], shape[3]}, op);
  if (2 * window.padding.height > window.kernel.height ||
      2 * window.padding.width > window.kernel.width) {
    throw ShapeError(fmt::format("{}: padding {} is more than half of the kernel {}", op,
                                 window.padding.to_string(), window.kernel.to_string()));
  }
}

}  // namespace

Variable max_pool2d(const Variable& x, const Window& window) {
  require_window("max_pool2d", x.shape(), window);
  MaxPool pool = max_pool(reordered(x.value(), Order::RowMajor), window);
  return record<MaxPoolNode>(std::move(pool.y), {x}, std::move(pool.index));
}

Variable avg_pool2d(const Variable& x, const Window& window, const AvgPoolOptions& options) {
  require_window("avg_pool2d", x.shape(), window);
  const CountPadding count = options.count_include_pad ? CountPadding::Yes : CountPadding::No;
  Tensor y = avg_pool(reordered(x.value(), Order::RowMajor), window, count);
  return record<AvgPoolNode>(std::move(y), {x}, window, count);
}

Variable global_average_pool(const Variable& x) {
  require_images("global_average_pool", x.shape());
  const Tensor images =
      is_of_images(x.value().order()) ? x.value() : reordered(x.value(), Order::RowMajor);
  return record<GlobalAveragePoolNode>(plane_means(images), {x}, images.order());
}

Variable subsample_pad(const Variable& x, Extent stride, int64_t channels) {
  require_images("subsample_pad", x.shape());
  const int64_t added = channels - x.shape()[1];
  if (added < 0 || stride.height < 1 || stride.width < 1) {
    throw ShapeError(
        fmt::format("subsample_pad: {} needs a stride of at least 1 and at least as many channels "
                    "as it has, found {} and {}",
                    x.shape().to_string(), stride.to_string(), channels));
  }
  const Order order = x.value().order() == Order::ImageSlabs ? Order::ImageSlabs : Order::RowMajor;
  Tensor y = lacuna::subsample_pad(reordered(x.value(), order), stride, channels, added / 2);
  return record<SubsamplePadNode>(std::move(y), {x}, stride, added / 2);
}

}  // namespace lacuna
