#include "lacuna/framework/autograd/ops/batch_norm.h"

#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/fused_norm.hpp"
#include "lacuna/framework/autograd/ops/int8_waiting.hpp"
#include "lacuna/framework/autograd/ops/norm_group.hpp"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/kernels/images/batch_norm.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"

namespace lacuna {
namespace {

// The shape as images: missing height and width are 1.
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
  // Slabs of the batch are not an order of images.
  const Tensor images = x.order() == Order::BatchSlabs ? reordered(x, Order::RowMajor) : x;
  return images.viewed_as(as_images(x.shape()));
}

Tensor in_order_of(const Tensor& images, const Tensor& other) {
  return reordered(images, other.order());
}

Tensor in_order_of_defined(const Tensor& x, const Tensor& other) {
  return x.defined() ? in_order_of(images_of(x), other) : Tensor();
}

std::vector<float> floats(const std::vector<double>& values) {
  return std::vector<float>(values.begin(), values.end());
}

Tensor tensor_of(const std::vector<double>& values) {
  return Tensor::from(Shape{static_cast<int64_t>(values.size())}, floats(values));
}

// The data from which the normalization, the sum after it and the ReLU after that are computed.
struct Norm {
  Variable x, weight, bias;
  Variable added;  // undefined if nothing is added
  std::vector<double> mean, inverse_deviation;
  MomentsOf of = MomentsOf::Batch;
  std::shared_ptr<NormGroup> group = nullptr;  // for a shard: the group of all shards
  size_t member = 0;
  double values = 0.0;     // per channel, in all shards
  bool is_folded = false;  // no change: means 0, deviations 1, no weight, no bias

  bool is_identity() const { return is_folded && !added.defined(); }
  double weight_of(size_t channel) const {
    return weight.defined() ? static_cast<double>(weight.value().data()[channel]) : 1.0;
  }
};

// With n = (x − mean) ρ and g = dy where y > 0: dx = w ρ (g − ⟨g⟩ − n ⟨g n⟩), with sums over all
// values of a channel.
template <class Saved>
NormSlopes slopes_of(const Saved& s, size_t channel, double sum_g, double sum_gn, MomentsOf of,
                     double values) {
  const double scale = s.weight[channel] * s.inverse_deviation[channel];
  if (of == MomentsOf::Elsewhere) return {.a = static_cast<float>(scale)};
  const double slope = -scale * s.inverse_deviation[channel] * sum_gn / values;
  return {.a = static_cast<float>(scale),
          .b = static_cast<float>(slope),
          .c = static_cast<float>(-scale * sum_g / values - slope * s.mean[channel])};
}

struct BatchNormNode final : Node {
  BatchNormNode(Tensor x_, Tensor passed_, const Norm& norm, std::vector<double> weight_)
      : x(std::move(x_)),
        passed(std::move(passed_)),
        weight(std::move(weight_)),
        mean(norm.mean),
        inverse_deviation(norm.inverse_deviation),
        of(norm.of) {}
  std::string_view name() const override { return "batch_norm"; }
  std::vector<Tensor*> saved() override { return {&x, &passed}; }
  bool adds_to_first() const override { return true; }
  // What has to be converted is converted once.
  bool takes_two(const Tensor& first) const override { return first.order() == x.order(); }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const auto n = static_cast<double>(x.shape().numel()) / static_cast<double>(mean.size());
    const auto slopes = [&](size_t channel, double sum_g, double sum_gn) {
      return slopes_of(*this, channel, sum_g, sum_gn, of, n);
    };
    ImageNormInputs in{.passed = passed, .x = x, .needs_g = needs(3)};
    const bool is_own = grad_output.unique();
    in.dy = in_order_of(images_of(grad_output), x);
    in.may_write_dy = is_own || !in.dy.shares_storage_with(grad_output);
    in.more_dy = in_order_of_defined(take_second(), x);
    in.earlier = in_order_of_defined(take_earlier(), x);
    const ImageNormGradient found =
        norm_gradient(in, floats(mean), floats(inverse_deviation), slopes);
    std::vector<Tensor> gradients(4);
    gradients[0] = found.dx.viewed_as(inputs()[0].shape());
    if (needs(1)) gradients[1] = tensor_of(found.sums.gx);  // dw = Σ g n   [channels]
    if (needs(2)) gradients[2] = tensor_of(found.sums.g);   // db = Σ g     [channels]
    if (needs(3)) gradients[3] = found.g.viewed_as(inputs()[3].shape());
    return gradients;
  }

  Tensor x, passed;  // passed: if a ReLU follows
  std::vector<double> weight, mean, inverse_deviation;
  MomentsOf of;
};

// The outer node of a shard: computes the sums for the inner node, and has the added input.
struct ShardNormOutputNode final : Node {
  ShardNormOutputNode(Tensor x_, Tensor passed_, const Norm& norm, size_t use_)
      : x(std::move(x_)),
        passed(std::move(passed_)),
        mean(floats(norm.mean)),
        inverse_deviation(floats(norm.inverse_deviation)),
        group(norm.group),
        member(norm.member),
        use(use_) {}
  std::string_view name() const override { return "batch_norm_sums"; }
  std::vector<Tensor*> saved() override { return {&x, &passed}; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = in_order_of(images_of(grad_output), x);
    if (needs(0)) {
      group->set_sums(use, member, norm_gradient_sums(dy, passed, x, mean, inverse_deviation));
    }
    std::vector<Tensor> gradients(2);
    Tensor g = dy;
    if (needs(1) && passed.defined()) {  // without an addition, the inner node uses them
      g = channel_affine_gradient(dy, passed, x, std::vector<NormSlopes>(mean.size(), {.a = 1.0f}),
                                  nullptr);
    }
    gradients[0] = g.viewed_as(inputs()[0].shape());
    if (needs(1)) gradients[1] = g.viewed_as(inputs()[1].shape());
    return gradients;
  }

  Tensor x, passed;  // passed: if a ReLU follows
  std::vector<float> mean, inverse_deviation;
  std::shared_ptr<NormGroup> group;
  size_t member, use;
};

// The inner node of a shard: computes the gradients from the sums over all shards.
struct ShardNormNode final : Node {
  ShardNormNode(Tensor x_, Tensor passed_, const Norm& norm, std::vector<double> weight_,
                size_t use_)
      : x(std::move(x_)),
        passed(std::move(passed_)),
        weight(std::move(weight_)),
        mean(norm.mean),
        inverse_deviation(norm.inverse_deviation),
        values(norm.values),
        group(norm.group),
        member(norm.member),
        use(use_) {}
  std::string_view name() const override { return "batch_norm"; }
  std::vector<Tensor*> saved() override { return {&x, &passed}; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = in_order_of(images_of(grad_output), x);
    const NormGradientSums& sums = group->sums(use);
    std::vector<NormSlopes> slopes;
    for (size_t i = 0; i < mean.size(); ++i) {
      slopes.push_back(slopes_of(*this, i, sums.g[i], sums.gx[i], MomentsOf::Batch, values));
    }
    const NormGradientSums& own = group->own_sums(use, member);
    std::vector<Tensor> gradients(3);
    gradients[0] =
        channel_affine_gradient(dy, passed, x, slopes, nullptr).viewed_as(inputs()[0].shape());
    if (needs(1)) gradients[1] = tensor_of(own.gx);  // dw = Σ g n over this shard   [channels]
    if (needs(2)) gradients[2] = tensor_of(own.g);   // db = Σ g over this shard     [channels]
    return gradients;
  }

  Tensor x, passed;  // passed: if a ReLU follows without an addition
  std::vector<double> weight, mean, inverse_deviation;
  double values;
  std::shared_ptr<NormGroup> group;
  size_t member, use;
};

Variable recorded_shard(const Norm& norm, const Tensor& x, const Tensor& y, const Tensor& passed,
                        std::vector<double> weight) {
  if (!grad_enabled()) return y.viewed_as(norm.x.shape());
  const ShardScope shard(norm.group->shard(norm.member));
  const size_t use = norm.group->take_use(norm.member);
  const bool masks_inside = norm.added.defined() && norm.added.requires_grad();
  Variable inner;
  {
    const NodePlace place(norm.group->place(use, norm.member));
    inner = record<ShardNormNode>(y.viewed_as(norm.x.shape()), {norm.x, norm.weight, norm.bias}, x,
                                  masks_inside ? Tensor() : passed, norm, std::move(weight), use);
  }
  return record<ShardNormOutputNode>(y.viewed_as(norm.x.shape()), {inner, norm.added}, x, passed,
                                     norm, use);
}

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
  Tensor passed;
  const bool needs_bits = rectify == Rectify::Yes && grad_enabled();
  const Tensor y = channel_affine(x, scale, shift, added, rectify, needs_bits ? &passed : nullptr);
  if (norm.group != nullptr) return recorded_shard(norm, x, y, passed, std::move(weight));
  return record<BatchNormNode>(y.viewed_as(norm.x.shape()),
                               {norm.x, norm.weight, norm.bias, norm.added}, x, passed, norm,
                               std::move(weight));
}

struct DeferredNorm final : DeferredValue {
  explicit DeferredNorm(Norm norm_) : norm(std::move(norm_)) {}
  Variable compute() override {
    if (!norm.is_identity()) return computed(norm, Rectify::No);
    if (!grad_enabled()) return norm.x.value();
    return norm.x.is_leaf() ? computed(norm, Rectify::No) : norm.x;  // a leaf has its own gradient
  }

  Norm norm;
};

const Norm* deferred_norm(const Variable& x) {
  const auto* deferred = dynamic_cast<const DeferredNorm*>(x.deferred_value().get());
  return deferred == nullptr ? nullptr : &deferred->norm;
}

// Adds right's moments to left: a count, means, sums of squared distances from the mean.
void join_moments(std::vector<double>& left, std::vector<double>&& right) {
  const size_t channels = left.size() / 2;
  const double count = left[0];
  for (size_t i = 1; i <= channels; ++i) {
    Moments joined{.count = count, .mean = left[i], .squares = left[channels + i]};
    joined.join({.count = right[0], .mean = right[i], .squares = right[channels + i]});
    left[i] = joined.mean;
    left[channels + i] = joined.squares;
  }
  left[0] = count + right[0];
}

void require_operands(const Variable& x, const Variable& weight, const Variable& bias,
                      const ChannelMoments& moments) {
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
}

std::vector<double> inverse_deviations(const ChannelMoments& moments, double eps) {
  std::vector<double> inverse;
  for (const double variance : moments.variance) inverse.push_back(1.0 / std::sqrt(variance + eps));
  return inverse;
}

}  // namespace

ChannelMoments channel_moments(const Variable& x) {
  if (const auto* maker = dynamic_cast<const HasChannelStatistics*>(x.creator().get());
      maker != nullptr && !maker->statistics().mean.empty()) {
    return {maker->statistics().mean, maker->statistics().variance};
  }
  const ChannelStatistics statistics = channel_statistics(images_of(x.value()));
  return {statistics.mean, statistics.variance};
}

Variable batch_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    const ChannelMoments& moments, MomentsOf of, const BatchNormOptions& options) {
  require_operands(x, weight, bias, moments);
  Norm norm{.x = x,
            .weight = weight,
            .bias = bias,
            .added = {},
            .mean = moments.mean,
            .inverse_deviation = inverse_deviations(moments, options.eps),
            .of = of};
  return Variable::deferred(x.shape(), std::make_shared<DeferredNorm>(std::move(norm)));
}

JointMoments channel_moments(std::span<const Variable> xs, const NormShards& shards) {
  std::vector<ShardValues> own;
  for (size_t i = 0; i < xs.size(); ++i) {
    const ChannelMoments moments = channel_moments(xs[i]);
    const auto channels = static_cast<double>(moments.mean.size());
    const double count = static_cast<double>(xs[i].shape().numel()) / channels;
    std::vector<double> values{count};
    values.insert(values.end(), moments.mean.begin(), moments.mean.end());
    for (const double variance : moments.variance) values.push_back(variance * count);
    own.push_back({shards.indices[i], std::move(values)});
  }
  const std::vector<double> joined = join_shards(std::move(own), join_moments, shards.peers);
  const auto means = joined.begin() + 1, squares = means + static_cast<int64_t>(joined.size() / 2);
  JointMoments joint{.moments = {{means, squares}, {}}, .values = joined[0]};
  for (auto square = squares; square != joined.end(); ++square) {
    joint.moments.variance.push_back(*square / joined[0]);
  }
  return joint;
}

std::vector<Variable> batch_norm(std::span<const Variable> xs, const Variable& weight,
                                 const Variable& bias, const JointMoments& joint,
                                 const NormShards& shards, const BatchNormOptions& options) {
  const auto group = std::make_shared<NormGroup>(shards);
  std::vector<Variable> ys;
  for (size_t i = 0; i < xs.size(); ++i) {
    require_operands(xs[i], weight, bias, joint.moments);
    Norm norm{.x = xs[i],
              .weight = weight,
              .bias = bias,
              .added = {},
              .mean = joint.moments.mean,
              .inverse_deviation = inverse_deviations(joint.moments, options.eps),
              .of = MomentsOf::Batch,
              .group = group,
              .member = i,
              .values = joint.values};
    ys.push_back(
        Variable::deferred(xs[i].shape(), std::make_shared<DeferredNorm>(std::move(norm))));
  }
  return ys;
}

Variable folded_batch_norm(const Variable& x) {
  if (waiting_int8(x) != nullptr) return x;  // it fuses sums and a ReLU itself
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
