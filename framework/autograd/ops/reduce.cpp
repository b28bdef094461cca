#include "lacuna/framework/autograd/ops/reduce.h"

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/rowwise/reduce.hpp"

namespace lacuna {
namespace {

double sum_all(const Tensor& x) {
  const Tensor rows = reordered(x, Order::RowMajor);  // a slab's padding must not be counted
  return sum(rows.storage());
}

struct SumNode final : Node {
  std::string_view name() const override { return "sum"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy []
    return {Tensor::full(inputs()[0].shape(), dy.item())};   // dx = dy   [x]
  }
};

struct MeanNode final : Node {
  std::string_view name() const override { return "mean"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy []
    const Shape& shape = inputs()[0].shape();
    const auto share = static_cast<float>(dy.item() / static_cast<double>(shape.numel()));
    return {Tensor::full(shape, share)};  // dx = dy / numel   [x]
  }
};

}  // namespace

Variable sum(const Variable& x) {
  return record<SumNode>(Tensor::scalar(static_cast<float>(sum_all(x.value()))), {x});
}

Variable mean(const Variable& x) {
  const int64_t count = x.shape().numel();
  if (count == 0) {
    throw ShapeError("mean: needs at least one element, found " + x.shape().to_string());
  }
  const double value = sum_all(x.value()) / static_cast<double>(count);
  return record<MeanNode>(Tensor::scalar(static_cast<float>(value)), {x});
}

}  // namespace lacuna
