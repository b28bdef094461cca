#include "lacuna/framework/autograd/ops/softmax.h"

#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/rowwise/softmax.hpp"

namespace lacuna {
namespace {

Tensor apply(SoftmaxKind kind, const char* op, const Tensor& input) {
  const Shape& shape = input.shape();
  if (shape.rank() < 1) {
    throw ShapeError(std::string(op) + ": needs [..., features], found a scalar " +
                     shape.to_string());
  }
  const Tensor x = reordered(input, Order::RowMajor);
  Tensor y = Tensor::empty(shape);
  softmax(kind, shape.batch(), shape.features(), x.data(), y.mutable_data());
  return y;
}

Tensor gradient(SoftmaxKind kind, const Tensor& y, const Tensor& grad_output) {
  const Tensor dy = reordered(grad_output, Order::RowMajor);
  Tensor dx = Tensor::empty(y.shape());
  softmax_gradient(kind, y.shape().batch(), y.shape().features(), y.data(), dy.data(),
                   dx.mutable_data());
  return dx;
}

struct SoftmaxNode final : Node {
  explicit SoftmaxNode(Tensor y_) : y(std::move(y_)) {}
  std::string_view name() const override { return "softmax"; }
  std::vector<Tensor*> saved() override { return {&y}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [..., features]
    return {gradient(SoftmaxKind::Probabilities, y, dy)};  // dx = y (dy − Σ dy y)   [..., features]
  }

  Tensor y;
};

struct LogSoftmaxNode final : Node {
  explicit LogSoftmaxNode(Tensor y_) : y(std::move(y_)) {}
  std::string_view name() const override { return "log_softmax"; }
  std::vector<Tensor*> saved() override { return {&y}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [..., features]
    return {gradient(SoftmaxKind::Logarithm, y, dy)};  // dx = dy − e^y Σ dy   [..., features]
  }

  Tensor y;
};

}  // namespace

Variable softmax(const Variable& x) {
  const Tensor y = apply(SoftmaxKind::Probabilities, "softmax", x.value());
  return record<SoftmaxNode>(y, {x}, y);
}

Variable log_softmax(const Variable& x) {
  const Tensor y = apply(SoftmaxKind::Logarithm, "log_softmax", x.value());
  return record<LogSoftmaxNode>(y, {x}, y);
}

}  // namespace lacuna
