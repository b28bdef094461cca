#include "lacuna/framework/autograd/ops/activation.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/fused_norm.hpp"
#include "lacuna/framework/autograd/ops/int8_waiting.hpp"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/activation.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/pointwise/swiglu.hpp"

namespace lacuna {
namespace {

Tensor apply(Activation kind, const Tensor& x) {
  Tensor y = Tensor::empty(x.shape(), x.order());
  activate(kind, x.storage(), y.mutable_storage());
  if (kind == Activation::Sigmoid) y.clear_padding();  // sigmoid of zero is not zero
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

// A slab is a row of all its examples: the gates and the gated features are its two halves.
struct GatedShape {
  int64_t rows, count;

  explicit GatedShape(const Tensor& y) : rows(y.shape().batch()), count(y.shape().features()) {
    if (y.order() != Order::BatchSlabs) return;
    rows = (rows + kSlabWidth - 1) / kSlabWidth;
    count *= kSlabWidth;
  }
};

struct SwigluNode final : Node {
  explicit SwigluNode(Tensor x_) : x(std::move(x_)) {}
  std::string_view name() const override { return "swiglu"; }
  std::vector<Tensor*> saved() override { return {&x}; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, x.order());  // dy [..., features]
    Tensor dx = Tensor::empty(x.shape(), x.order());
    const GatedShape shape(dy);  // d gate = dy up silu′, d up = dy silu   [..., 2 features]
    swiglu_gradient(shape.rows, shape.count, x.data(x.order()), dy.data(x.order()),
                    dx.mutable_data(x.order()));
    return {dx};
  }

  Tensor x;
};

}  // namespace

Variable relu(const Variable& x) {
  if (const auto fused = fused_relu(x)) return *fused;
  if (const auto fused = int8_activation(x, Int8Activation::ReLU)) return *fused;
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
  if (const auto fused = int8_activation(x, Int8Activation::GELU)) return *fused;
  return record<GeluNode>(apply(Activation::GELU, x.value()), {x}, x.value());
}

Variable gelu_tanh(const Variable& x) {
  if (const auto fused = int8_activation(x, Int8Activation::GELUTanh)) return *fused;
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

Variable swiglu(const Variable& x) {
  const Shape& shape = x.shape();
  if (shape.rank() < 1 || shape.features() % 2 != 0) {
    throw ShapeError("swiglu: needs [..., 2 features], found " + shape.to_string());
  }
  const Order order = x.value().order() == Order::BatchSlabs ? Order::BatchSlabs : Order::RowMajor;
  const Tensor input = reordered(x.value(), order);
  Tensor y = Tensor::empty(shape.with_features(shape.features() / 2), order);
  const GatedShape gated(y);
  swiglu(gated.rows, gated.count, input.data(order), y.mutable_data(order));
  return record<SwigluNode>(std::move(y), {x}, input);
}

}  // namespace lacuna
