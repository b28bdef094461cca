#include "lacuna/framework/autograd/ops/batch_norm.h"

#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/fused_norm.hpp"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/image_slabs.h"
#include "lacuna/framework/kernels/images/batch_norm.h"
#include "lacuna/framework/kernels/pointwise/reorder.h"

namespace lacuna {
namespace {

// As images: what is missing of height and width is 1.
Shape as_images(const Shape& shape) {
  if (shape.rank() < 2 || shape.rank() > 4) {
    throw ShapeError(
        "batch_norm: needs [batch, channels], [batch, channels, length] or [batch, channels, "
        "height, width], found " +
        shape.to_string());
  }
  return shape.rank() == 2 ? Shape{shape[0], shape[1], 1, 1} : image_shape(shape);
}

Tensor images_of(const Tensor& x) {
  // Slabs of the batch are no order of images.
  const Tensor images = x.order() == Order::BatchSlabs ? reordered(x, Order::RowMajor) : x;
  return images.viewed_as(as_images(x.shape()));
}

Tensor in_order_of(const Tensor& images, const Tensor& other) {
  return reordered(images, other.order());
}

std::vector<float> floats(const std::vector<double>& values) {
  return std::vector<float>(values.begin(), values.end());
}

Tensor tensor_of(const std::vector<double>& values) {
  return Tensor::from(Shape{static_cast<int64_t>(values.size())}, floats(values));
}

// What the normalization, the sum behind it and the ReLU behind that are computed from.
struct Norm {
  Variable x, weight, bias;
  Variable added;  // undefined: nothing
  std::vector<double> mean, inverse_deviation;
  MomentsOf of = MomentsOf::Batch;
  bool is_folded = false;  // it changes nothing: means of 0, deviations of 1, no weight, no bias

  bool is_identity() const { return is_folded && !added.defined(); }
  double weight_of(size_t channel) const {
    return weight.defined() ? static_cast<double>(weight.value().data()[channel]) : 1.0;
  }
};

struct BatchNormNode final : Node {
  BatchNormNode(Tensor x_, Tensor y_, const Norm& norm, std::vector<double> weight_)
      : x(std::move(x_)),
        y(std::move(y_)),
        weight(std::move(weight_)),
        mean(norm.mean),
        inverse_deviation(norm.inverse_deviation),
        of(norm.of) {}
  std::string_view name() const override { return "batch_norm"; }
  std::vector<Tensor*> saved() override { return {&x, &y}; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = in_order_of(images_of(grad_output), x);
    const std::vector<float> m = floats(mean), rho = floats(inverse_deviation);
    const NormGradientSums sums = norm_gradient_sums(dy, y, x, m, rho);
    const size_t channels = mean.size();
    std::vector<float> a(channels), b(channels), c(channels);
    const auto n = static_cast<double>(x.shape().numel()) / static_cast<double>(channels);
    for (size_t i = 0; i < channels; ++i) {
      // With n = (x − mean) ρ and g = dy where y > 0: dx = w ρ (g − ⟨g⟩ − n ⟨g n⟩)
      const double scale = weight[i] * inverse_deviation[i];
      a[i] = static_cast<float>(scale);
      if (of == MomentsOf::Elsewhere) continue;
      const double slope = -scale * inverse_deviation[i] * sums.gx[i] / n;
      b[i] = static_cast<float>(slope);
      c[i] = static_cast<float>(-scale * sums.g[i] / n - slope * mean[i]);
    }
    std::vector<Tensor> gradients(4);
    Tensor g;
    const bool needs_masked = needs(3) && y.defined();
    gradients[0] = channel_affine_gradient(dy, y, x, a, b, c, needs_masked ? &g : nullptr)
                       .viewed_as(inputs()[0].shape());
    if (needs(1)) gradients[1] = tensor_of(sums.gx);  // dw = Σ g n   [channels]
    if (needs(2)) gradients[2] = tensor_of(sums.g);   // db = Σ g     [channels]
    if (needs(3)) gradients[3] = (needs_masked ? g : dy).viewed_as(inputs()[3].shape());
    return gradients;
  }

  Tensor x, y;  // y: where a ReLU follows
  std::vector<double> weight, mean, inverse_deviation;
  MomentsOf of;
};

Variable computed(const Norm& norm, Rectify rectify) {
  const Tensor x = images_of(norm.x.value());
  const size_t channels = norm.mean.size();
  std::vector<float> scale(channels), shift(channels);
  std::vector<double> weight(channels);
  for (size_t i = 0; i < channels; ++i) {
    weight[i] = norm.weight_of(i);
    const double factor = weight[i] * norm.inverse_deviation[i];
    const double bias =
        norm.bias.defined() ? static_cast<double>(norm.bias.value().data()[i]) : 0.0;
    scale[i] = static_cast<float>(factor);
    shift[i] = static_cast<float>(bias - norm.mean[i] * factor);
  }
  const Tensor added =
      norm.added.defined() ? in_order_of(images_of(norm.added.value()), x) : Tensor();
  const Tensor y = channel_affine(x, scale, shift, added, rectify);
  return record<BatchNormNode>(y.viewed_as(norm.x.shape()),
                               {norm.x, norm.weight, norm.bias, norm.added}, x,
                               rectify == Rectify::Yes ? y : Tensor(), norm, std::move(weight));
}

struct DeferredNorm final : DeferredValue {
  explicit DeferredNorm(Norm norm_) : norm(std::move(norm_)) {}
  Variable compute() override {
    if (!norm.is_identity()) return computed(norm, Rectify::No);
    if (!grad_enabled()) return norm.x.value();
    return norm.x.is_leaf() ? computed(norm, Rectify::No) : norm.x;  // a leaf's gradient is its own
  }

  Norm norm;
};

const Norm* deferred_norm(const Variable& x) {
  const auto* deferred = dynamic_cast<const DeferredNorm*>(x.deferred_value().get());
  return deferred == nullptr ? nullptr : &deferred->norm;
}

}  // namespace

ChannelMoments channel_moments(const Variable& x) {
  const ChannelStatistics statistics = channel_statistics(images_of(x.value()));
  return {statistics.mean, statistics.variance};
}

Variable batch_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    const ChannelMoments& moments, MomentsOf of, const BatchNormOptions& options) {
  const Shape expected{as_images(x.shape())[1]};
  const auto fits = [&](const Variable& v) { return !v.defined() || v.shape() == expected; };
  if (!fits(weight) || !fits(bias) || static_cast<int64_t>(moments.mean.size()) != expected[0] ||
      moments.variance.size() != moments.mean.size()) {
    throw ShapeError(fmt::format(
        "batch_norm: x {} needs a weight, a bias and moments of shape {}, found {}, {} and [{}]",
        x.shape().to_string(), expected.to_string(),
        weight.defined() ? weight.shape().to_string() : "none",
        bias.defined() ? bias.shape().to_string() : "none", moments.mean.size()));
  }
  Norm norm{.x = x,
            .weight = weight,
            .bias = bias,
            .added = {},
            .mean = moments.mean,
            .inverse_deviation = {},
            .of = of};
  for (const double variance : moments.variance) {
    norm.inverse_deviation.push_back(1.0 / std::sqrt(variance + options.eps));
  }
  return Variable::deferred(x.shape(), std::make_shared<DeferredNorm>(std::move(norm)));
}

Variable folded_batch_norm(const Variable& x) {
  const auto channels = static_cast<size_t>(as_images(x.shape())[1]);
  Norm norm{.x = x,
            .weight = {},
            .bias = {},
            .added = {},
            .mean = std::vector<double>(channels, 0.0),
            .inverse_deviation = std::vector<double>(channels, 1.0),
            .of = MomentsOf::Elsewhere,
            .is_folded = true};
  return Variable::deferred(x.shape(), std::make_shared<DeferredNorm>(std::move(norm)));
}

std::optional<Variable> fused_add(const Variable& a, const Variable& b) {
  for (const auto& [norm_of, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    const Norm* norm = deferred_norm(*norm_of);
    if (norm == nullptr || norm->added.defined() || other->shape() != norm_of->shape()) continue;
    Norm sum = *norm;
    sum.added = *other;
    return Variable::deferred(a.shape(), std::make_shared<DeferredNorm>(std::move(sum)));
  }
  return std::nullopt;
}

std::optional<Variable> fused_relu(const Variable& x) {
  const Norm* norm = deferred_norm(x);
  if (norm == nullptr) return std::nullopt;
  return computed(*norm, Rectify::Yes);
}

}  // namespace lacuna
