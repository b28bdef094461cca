#include "lacuna/framework/autograd/ops/arithmetic.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/deferred_sum.hpp"
#include "lacuna/framework/autograd/ops/fused_norm.hpp"
#include "lacuna/framework/autograd/ops/int8_waiting.hpp"
#include "lacuna/framework/core/shards.h"
#include "lacuna/framework/kernels/pointwise/elementwise.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/rowwise/broadcast.hpp"

namespace lacuna {
namespace {

using BinaryKernel = void (*)(std::span<const float>, std::span<const float>, std::span<float>);

// Inputs are first expanded to the common shape. This is a copy, but one kernel suffices.
Tensor apply(BinaryKernel kernel, const Tensor& a, const Tensor& b, const Shape& shape) {
  const Tensor left = broadcast_to(a, shape);
  const Tensor right = reordered(broadcast_to(b, shape), left.order());
  Tensor y = Tensor::empty(shape, left.order());
  kernel(left.storage(), right.storage(), y.mutable_storage());
  return y;
}

Tensor scaled(const Tensor& x, float factor) {
  Tensor y = Tensor::empty(x.shape(), x.order());
  scale(factor, x.storage(), y.mutable_storage());
  return y;
}

struct AddNode final : Node {
  std::string_view name() const override { return "add"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [broadcast]
    std::vector<Tensor> gradients(2);
    if (needs(0)) gradients[0] = sum_to(dy, inputs()[0].shape());  // da = Σ dy   [a]
    if (needs(1)) gradients[1] = sum_to(dy, inputs()[1].shape());  // db = Σ dy   [b]
    return gradients;
  }
};

struct SubtractNode final : Node {
  std::string_view name() const override { return "subtract"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [broadcast]
    std::vector<Tensor> gradients(2);
    if (needs(0)) gradients[0] = sum_to(dy, inputs()[0].shape());  // da = Σ dy   [a]
    if (needs(1)) gradients[1] = scaled(sum_to(dy, inputs()[1].shape()), -1.0f);  // db = −Σ dy  [b]
    return gradients;
  }
};

struct MultiplyNode final : Node {
  MultiplyNode(Tensor a_, Tensor b_) : a(std::move(a_)), b(std::move(b_)) {}
  std::string_view name() const override { return "multiply"; }
  std::vector<Tensor*> saved() override { return {&a, &b}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [broadcast]
    std::vector<Tensor> gradients(2);
    const auto product = [&](const Tensor& other) {
      return apply(lacuna::multiply, dy, other, dy.shape());
    };
    if (needs(0)) gradients[0] = sum_to(product(b), a.shape());  // da = Σ dy b   [a]
    if (needs(1)) gradients[1] = sum_to(product(a), b.shape());  // db = Σ dy a   [b]
    return gradients;
  }

  Tensor a, b;
};

struct ScaleNode final : Node {
  explicit ScaleNode(float factor_) : factor(factor_) {}
  std::string_view name() const override { return "scale"; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    return {scaled(dy, factor)};                             // dx = factor dy   [...]
  }

  float factor;
};

}  // namespace

DeferredSum::DeferredSum(Variable a, Variable b)
    : a_(std::move(a)), b_(std::move(b)), shard_(current_shard()) {
  const auto depth_of = [](const Variable& x) {
    const DeferredSum* const sum = deferred_sum(x);
    return sum == nullptr ? 0 : sum->depth();
  };
  depth_ = 1 + std::max(depth_of(a_), depth_of(b_));
}

Variable DeferredSum::compute() {
  const ShardScope shard(shard_);
  if (!value_.defined()) value_ = apply(lacuna::add, a_.value(), b_.value(), a_.shape());
  return record<AddNode>(std::move(value_), {a_, b_});
}

DeferredSum* deferred_sum(const Variable& x) {
  return dynamic_cast<DeferredSum*>(x.deferred_value().get());
}

Variable add(const Variable& a, const Variable& b) {
  const Shape shape = broadcast_shape("add", a.shape(), b.shape());
  if (const auto sum = int8_sum(a, b)) return *sum;
  if (const auto sum = fused_add(a, b)) return *sum;
  // Values of leaves may change before a deferred sum is computed.
  if (a.shape() == b.shape() && !a.is_leaf() && !b.is_leaf()) {
    constexpr int kDeepest = 32;  // they are computed and destroyed by recursion
    auto sum = std::make_shared<DeferredSum>(a, b);
    if (sum->depth() <= kDeepest) return Variable::deferred(shape, std::move(sum));
  }
  return record<AddNode>(apply(lacuna::add, a.value(), b.value(), shape), {a, b});
}

Variable subtract(const Variable& a, const Variable& b) {
  const Shape shape = broadcast_shape("subtract", a.shape(), b.shape());
  return record<SubtractNode>(apply(lacuna::subtract, a.value(), b.value(), shape), {a, b});
}

Variable multiply(const Variable& a, const Variable& b) {
  const Shape shape = broadcast_shape("multiply", a.shape(), b.shape());
  return record<MultiplyNode>(apply(lacuna::multiply, a.value(), b.value(), shape), {a, b},
                              a.value(), b.value());
}

Variable scale(const Variable& x, float factor) {
  return record<ScaleNode>(scaled(x.value(), factor), {x}, factor);
}

}  // namespace lacuna
