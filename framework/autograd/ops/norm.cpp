#include "lacuna/framework/autograd/ops/norm.h"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/rowwise/group_norm.hpp"
#include "lacuna/framework/kernels/rowwise/norm.hpp"
#include "lacuna/framework/kernels/rowwise/norm_slabs.hpp"
#include "lacuna/framework/kernels/rowwise/reduce.hpp"
#include "lacuna/framework/kernels/rowwise/rms_norm.hpp"

namespace lacuna {
namespace {

struct LayerNormNode final : Node {
  LayerNormNode(Tensor x_, Tensor weight_, Tensor mean_, Tensor inverse_deviation_)
      : x(std::move(x_)),
        weight(std::move(weight_)),
        mean(std::move(mean_)),
        inverse_deviation(std::move(inverse_deviation_)) {}
  std::string_view name() const override { return "layer_norm"; }
  std::vector<Tensor*> saved() override { return {&x, &weight, &mean, &inverse_deviation}; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, x.order());  // dy [..., features]
    Tensor dx = Tensor::empty(x.shape(), x.order()), product = Tensor::empty(x.shape(), x.order());
    const auto kernel = x.order() == Order::BatchSlabs ? norm_slabs_gradient : layer_norm_gradient;
    // With n = (x − mean) ρ, g = dy w: dx = ρ (g − ⟨g⟩ − n ⟨g n⟩)   [..., features]
    kernel({x.shape().batch(), x.shape().features()}, x.data(x.order()), weight.data(), mean.data(),
           inverse_deviation.data(), dy.data(x.order()), dx.mutable_data(x.order()),
           product.mutable_data(x.order()));
    std::vector<Tensor> gradients(3);
    gradients[0] = dx;
    if (needs(1)) gradients[1] = sum_rows(product);  // dw = Σ dy n   [features]
    if (needs(2)) gradients[2] = sum_rows(dy);       // db = Σ dy     [features]
    return gradients;
  }

  Tensor x, weight, mean, inverse_deviation;
};

struct RmsNormNode final : Node {
  RmsNormNode(Tensor x_, Tensor weight_, Tensor inverse_root_)
      : x(std::move(x_)), weight(std::move(weight_)), inverse_root(std::move(inverse_root_)) {}
  std::string_view name() const override { return "rms_norm"; }
  std::vector<Tensor*> saved() override { return {&x, &weight, &inverse_root}; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Order order = x.order();
    const Tensor dy = reordered(grad_output, order);  // dy [..., features]
    Tensor dx = Tensor::empty(x.shape(), order), product = Tensor::empty(x.shape(), order);
    const NormShape shape{x.shape().batch(), x.shape().features()};
    // With n = x ρ, g = dy w: dx = ρ (g − n ⟨g n⟩)   [..., features]
    if (order == Order::BatchSlabs) {
      norm_slabs_gradient(shape, x.data(order), weight.data(), nullptr, inverse_root.data(),
                          dy.data(order), dx.mutable_data(order), product.mutable_data(order));
    } else {
      rms_norm_gradient(shape, x.data(), weight.data(), inverse_root.data(), dy.data(),
                        dx.mutable_data(), product.mutable_data());
    }
    std::vector<Tensor> gradients(2);
    gradients[0] = dx;
    if (needs(1)) gradients[1] = sum_rows(product);  // dw = Σ dy n   [features]
    return gradients;
  }

  Tensor x, weight, inverse_root;
};

struct GroupNormNode final : Node {
  GroupNormNode(GroupNormShape problem_, Tensor x_, Tensor weight_, Tensor mean_,
                Tensor inverse_deviation_)
      : problem(problem_),
        x(std::move(x_)),
        weight(std::move(weight_)),
        mean(std::move(mean_)),
        inverse_deviation(std::move(inverse_deviation_)) {}
  std::string_view name() const override { return "group_norm"; }
  std::vector<Tensor*> saved() override { return {&x, &weight, &mean, &inverse_deviation}; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, Order::RowMajor);  // dy [batch, channels, ...]
    const Shape sums{problem.batch, problem.channels};
    Tensor dx = Tensor::empty(x.shape()), products = Tensor::empty(sums),
           totals = Tensor::empty(sums);
    // With n = (x − mean) ρ, g = dy w: dx = ρ (g − ⟨g⟩ − n ⟨g n⟩)   [batch, channels, ...]
    group_norm_gradient(problem, x.data(), weight.data(), mean.data(), inverse_deviation.data(),
                        dy.data(), dx.mutable_data(), products.mutable_data(),
                        totals.mutable_data());
    std::vector<Tensor> gradients(3);
    gradients[0] = dx;
    if (needs(1)) gradients[1] = sum_rows(products);  // dw = Σ dy n   [channels]
    if (needs(2)) gradients[2] = sum_rows(totals);    // db = Σ dy     [channels]
    return gradients;
  }

  GroupNormShape problem;
  Tensor x, weight, mean, inverse_deviation;
};

void require_group_norm(const Shape& shape, const Shape& weight, const Shape& bias,
                        int64_t groups) {
  if (shape.rank() < 2 || weight != Shape{shape[1]} || bias != weight) {
    throw ShapeError(
        fmt::format("group_norm: needs x [batch, channels, ...], a weight and a bias [channels], "
                    "found {}, {} and {}",
                    shape.to_string(), weight.to_string(), bias.to_string()));
  }
  if (groups < 1 || shape[1] % groups != 0) {
    throw ShapeError(fmt::format("group_norm: x {} has {} channels, which {} groups do not divide",
                                 shape.to_string(), shape[1], groups));
  }
}

// The order that a norm over the last dimension computes in: the reference knows rows alone.
Order norm_order(const Tensor& x) {
  const bool is_slabs = x.order() == Order::BatchSlabs && !use_reference_kernels();
  return is_slabs ? Order::BatchSlabs : Order::RowMajor;
}

// Places for a number of each row, those of the last slab's padding included.
int64_t statistics(const Tensor& x) {
  const int64_t rows = x.shape().batch();
  if (x.order() == Order::RowMajor) return rows;
  return (rows + kSlabWidth - 1) / kSlabWidth * kSlabWidth;
}

// The kernel of that name, and not the operation.
constexpr auto layer_norm_rows = static_cast<decltype(&norm_slabs)>(layer_norm);

}  // namespace

Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    const LayerNormOptions& options) {
  const Shape& shape = x.shape();
  const Shape expected{shape.features()};
  if (shape.rank() < 1 || weight.shape() != expected || bias.shape() != expected) {
    throw ShapeError("layer_norm: x " + shape.to_string() + " needs a weight and a bias of shape " +
                     expected.to_string() + ", found " + weight.shape().to_string() + " and " +
                     bias.shape().to_string());
  }
  const Tensor input = reordered(x.value(), norm_order(x.value()));
  const Order order = input.order();
  Tensor y = Tensor::empty(shape, order);
  Tensor mean = Tensor::empty({statistics(input)}),
         inverse_deviation = Tensor::empty({statistics(input)});
  const auto kernel = order == Order::BatchSlabs ? norm_slabs : layer_norm_rows;
  kernel({shape.batch(), shape.features()}, options.eps, input.data(order), weight.value().data(),
         bias.value().data(), y.mutable_data(order), mean.mutable_data(),
         inverse_deviation.mutable_data());
  return record<LayerNormNode>(std::move(y), {x, weight, bias}, input, weight.value(), mean,
                               inverse_deviation);
}

Variable rms_norm(const Variable& x, const Variable& weight, const RmsNormOptions& options) {
  const Shape& shape = x.shape();
  if (shape.rank() < 1 || weight.shape() != Shape{shape.features()}) {
    throw ShapeError("rms_norm: x " + shape.to_string() + " needs a weight of shape " +
                     Shape{shape.features()}.to_string() + ", found " + weight.shape().to_string());
  }
  const Tensor input = reordered(x.value(), norm_order(x.value()));
  const Order order = input.order();
  const NormShape rows{shape.batch(), shape.features()};
  Tensor y = Tensor::empty(shape, order), inverse_root = Tensor::empty({statistics(input)});
  if (order == Order::BatchSlabs) {
    norm_slabs(rows, options.eps, input.data(order), weight.value().data(), nullptr,
               y.mutable_data(order), nullptr, inverse_root.mutable_data());
  } else {
    rms_norm(rows, options.eps, input.data(), weight.value().data(), y.mutable_data(),
             inverse_root.mutable_data());
  }
  return record<RmsNormNode>(std::move(y), {x, weight}, input, weight.value(), inverse_root);
}

Variable group_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    const GroupNormOptions& options) {
  const Shape& shape = x.shape();
  require_group_norm(shape, weight.shape(), bias.shape(), options.groups);
  const int64_t images = shape[0] * shape[1];
  const GroupNormShape problem{.batch = shape[0],
                               .channels = shape[1],
                               .groups = options.groups,
                               .size = images == 0 ? 0 : shape.numel() / images};
  const Tensor rows = reordered(x.value(), Order::RowMajor);
  const Shape groups{problem.batch, problem.groups};
  Tensor y = Tensor::empty(shape), mean = Tensor::empty(groups),
         inverse_deviation = Tensor::empty(groups);
  group_norm(problem, options.eps, rows.data(), weight.value().data(), bias.value().data(),
             y.mutable_data(), mean.mutable_data(), inverse_deviation.mutable_data());
  return record<GroupNormNode>(std::move(y), {x, weight, bias}, problem, rows, weight.value(), mean,
                               inverse_deviation);
}

}  // namespace lacuna
