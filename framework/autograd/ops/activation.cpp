#include "lacuna/framework/autograd/ops/activation.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/fused_norm.hpp"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/activation.h"
#include "lacuna/framework/kernels/pointwise/reorder.h"

namespace lacuna {
namespace {

Tensor apply(Activation kind, const Tensor& x) {
  Tensor y = Tensor::empty(x.shape(), x.order());
  activate(kind, x.storage(), y.mutable_storage());
  if (kind == Activation::Sigmoid) y.clear_padding();  // the one that makes something of zero
  return y;
}

Tensor gradient(Activation kind, const Tensor& saved, const Tensor& dy) {
  Tensor dx = Tensor::empty(saved.shape(), saved.order());
  activate_gradient(kind, saved.storage(), reordered(dy, saved.order()).storage(),
                    dx.mutable_storage());
  return dx;
}

struct ReluNode final : Node {
  explicit ReluNode(Tensor y_) : y(std::move(y_)) {}
  std::string_view name() const override { return "relu"; }
  std::vector<Tensor*> saved() override { return {&y}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    return {gradient(Activation::ReLU, y, dy)};              // dx = y ≤ 0 ? 0 : dy   [...]
  }

  Tensor y;
};

struct LeakyReluNode final : Node {
  LeakyReluNode(Tensor y_, float slope_) : y(std::move(y_)), slope(slope_) {}
  std::string_view name() const override { return "leaky_relu"; }
  std::vector<Tensor*> saved() override { return {&y}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    Tensor dx = Tensor::empty(y.shape(), y.order());
    leaky_relu_gradient(slope, y.storage(), reordered(dy, y.order()).storage(),
                        dx.mutable_storage());
    return {dx};  // dx = y ≤ 0 ? slope dy : dy   [...]
  }

  Tensor y;
  float slope;
};

struct SquaredReluNode final : Node {
  explicit SquaredReluNode(Tensor x_) : x(std::move(x_)) {}
  std::string_view name() const override { return "squared_relu"; }
  std::vector<Tensor*> saved() override { return {&x}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    return {gradient(Activation::SquaredReLU, x, dy)};       // dx = x ≤ 0 ? 0 : 2 x dy   [...]
  }

  Tensor x;
};

struct GeluNode final : Node {
  explicit GeluNode(Tensor x_) : x(std::move(x_)) {}
  std::string_view name() const override { return "gelu"; }
  std::vector<Tensor*> saved() override { return {&x}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    return {gradient(Activation::GELU, x, dy)};              // dx = dy (Φ(x) + x φ(x))   [...]
  }

  Tensor x;
};

struct GeluTanhNode final : Node {
  explicit GeluTanhNode(Tensor x_) : x(std::move(x_)) {}
  std::string_view name() const override { return "gelu_tanh"; }
  std::vector<Tensor*> saved() override { return {&x}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    // With p = σ(u), u = 2 √(2/π) (x + 0.044715 x³):
    return {gradient(Activation::GELUTanh, x, dy)};  // dx = dy (p + x p (1 − p) u′)   [...]
  }

  Tensor x;
};

struct SiluNode final : Node {
  explicit SiluNode(Tensor x_) : x(std::move(x_)) {}
  std::string_view name() const override { return "silu"; }
  std::vector<Tensor*> saved() override { return {&x}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    return {gradient(Activation::SiLU, x, dy)};  // dx = dy σ(x) (1 + x (1 − σ(x)))   [...]
  }

  Tensor x;
};

struct SigmoidNode final : Node {
  explicit SigmoidNode(Tensor y_) : y(std::move(y_)) {}
  std::string_view name() const override { return "sigmoid"; }
  std::vector<Tensor*> saved() override { return {&y}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    return {gradient(Activation::Sigmoid, y, dy)};           // dx = dy y (1 − y)   [...]
  }

  Tensor y;
};

struct TanhNode final : Node {
  explicit TanhNode(Tensor y_) : y(std::move(y_)) {}
  std::string_view name() const override { return "tanh"; }
  std::vector<Tensor*> saved() override { return {&y}; }

  std::vector<Tensor> backward(const Tensor& dy) override {  // dy [...]
    return {gradient(Activation::Tanh, y, dy)};              // dx = dy (1 − y²)   [...]
  }

  Tensor y;
};

}  // namespace

Variable relu(const Variable& x) {
  if (const auto fused = fused_relu(x)) return *fused;
  const Tensor y = apply(Activation::ReLU, x.value());
  return record<ReluNode>(y, {x}, y);
}

Variable leaky_relu(const Variable& x, float slope) {
  if (!(slope >= 0.0f && std::isfinite(slope))) {
    throw ConfigError(fmt::format(
        "leaky_relu: the slope must be a finite number of at least 0, found {}", slope));
  }
  Tensor y = Tensor::empty(x.shape(), x.value().order());
  leaky_relu(slope, x.value().storage(), y.mutable_storage());
  return record<LeakyReluNode>(y, {x}, y, slope);
}

Variable squared_relu(const Variable& x) {
  return record<SquaredReluNode>(apply(Activation::SquaredReLU, x.value()), {x}, x.value());
}

Variable gelu(const Variable& x) {
  return record<GeluNode>(apply(Activation::GELU, x.value()), {x}, x.value());
}

Variable gelu_tanh(const Variable& x) {
  return record<GeluTanhNode>(apply(Activation::GELUTanh, x.value()), {x}, x.value());
}

Variable silu(const Variable& x) {
  return record<SiluNode>(apply(Activation::SiLU, x.value()), {x}, x.value());
}

Variable sigmoid(const Variable& x) {
  const Tensor y = apply(Activation::Sigmoid, x.value());
  return record<SigmoidNode>(y, {x}, y);
}

Variable tanh(const Variable& x) {
  const Tensor y = apply(Activation::Tanh, x.value());
  return record<TanhNode>(y, {x}, y);
}

}  // namespace lacuna
