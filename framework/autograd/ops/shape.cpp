#include "lacuna/framework/autograd/ops/shape.h"

#include <utility>
#include <vector>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

struct ReshapeNode final : Node {
  std::string_view name() const override { return "reshape"; }

  std::vector<Tensor> backward(const Tensor& dy) override {                // dy [shape]
    return {reordered(dy, Order::RowMajor).reshape(inputs()[0].shape())};  // dx = dy   [x]
  }
};

Tensor transposed(const Tensor& input) {
  const Shape& shape = input.shape();
  std::vector<int64_t> sizes(shape.sizes().begin(), shape.sizes().end());
  std::swap(sizes[sizes.size() - 2], sizes[sizes.size() - 1]);
  const int64_t rows = shape[-2], columns = shape[-1];
  const Tensor x = reordered(input, Order::RowMajor);
  Tensor y = Tensor::empty(Shape(sizes));
  if (x.numel() == 0) return y;
  transpose_matrices(x.numel() / (rows * columns), rows, columns, x.data(), y.mutable_data());
  return y;
}

struct TransposeNode final : Node {
  std::string_view name() const override { return "transpose"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [..., n, m]
    return {transposed(dy)};                                 // dx = dyᵀ   [..., m, n]
  }
};

}  // namespace

Variable reshape(const Variable& x, const Shape& shape) {
  return record<ReshapeNode>(reordered(x.value(), Order::RowMajor).reshape(shape), {x});
}

Variable transpose(const Variable& x) {
  if (x.shape().rank() < 2) {
    throw ShapeError("transpose: needs [..., m, n], found " + x.shape().to_string());
  }
  return record<TransposeNode>(transposed(x.value()), {x});
}

Variable with_channels_last(const Variable& x,
                            const std::function<Variable(const Variable& x)>& apply) {
  const Shape shape = x.shape();
  if (shape.rank() != 4) return apply(x);
  const Variable pixels = transpose(reshape(x, {shape[0], shape[1], shape[2] * shape[3]}));
  return reshape(transpose(apply(pixels)), shape);
}

Variable flatten(const Variable& x) {
  if (x.shape().rank() < 1) {
    throw ShapeError("flatten: needs [batch, ...], found a scalar " + x.shape().to_string());
  }
  return reshape(x, {x.shape()[0], x.shape().without_batch().numel()});
}

}  // namespace lacuna
