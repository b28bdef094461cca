#include "lacuna/framework/autograd/ops/norm.h"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/deferred_sum.hpp"
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

// The gradients of a norm over the features; `mean` is undefined for an RMS norm. `earlier` is
// added to the input's gradient, and overwritten if no other variable shares its memory.
struct FeatureNormGradients {
  FeatureNormGradients(const Tensor& x, const Tensor& weight, const Tensor& mean,
                       const Tensor& inverse_deviation, const Tensor& grad_output, Tensor earlier) {
    const Order order = x.order();
    const NormShape shape{x.shape().batch(), x.shape().features()};
    const Tensor dy = reordered(grad_output, order);
    const bool is_centered = mean.defined();
    if (earlier.defined()) earlier = reordered(earlier, order);
    dx = earlier.defined() && earlier.unique() ? earlier : Tensor::empty(x.shape(), order);
    const Shape sums{norm_row_blocks(shape.rows), shape.features};
    Tensor of_products = Tensor::empty(sums);
    if (is_centered) totals = Tensor::empty(sums);
    const auto kernel = order == Order::BatchSlabs ? norm_slabs_gradient : layer_norm_gradient;
    kernel(shape, {.x = x.data(order),
                   .weight = weight.data(),
                   .mean = is_centered ? mean.data() : nullptr,
                   .inverse_deviation = inverse_deviation.data(),
                   .dy = dy.data(order),
                   .added = earlier.defined() ? earlier.data(order) : nullptr,
                   .dx = dx.mutable_data(order),
                   .products = of_products.mutable_data(),
                   .totals = is_centered ? totals.mutable_data() : nullptr});
    products = std::move(of_products);
  }

  Tensor dx;                // [..., features]
  Tensor products, totals;  // [blocks of rows, features]: Σ dy n, Σ dy
};

struct LayerNormNode final : Node {
  LayerNormNode(Tensor x_, Tensor weight_, Tensor mean_, Tensor inverse_deviation_)
      : x(std::move(x_)),
        weight(std::move(weight_)),
        mean(std::move(mean_)),
        inverse_deviation(std::move(inverse_deviation_)) {}
  std::string_view name() const override { return "layer_norm"; }
  std::vector<Tensor*> saved() override { return {&x, &weight, &mean, &inverse_deviation}; }
  bool adds_to_first() const override { return true; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    // With n = (x − mean) ρ, g = dy w: dx = ρ (g − ⟨g⟩ − n ⟨g n⟩)   [..., features]
    const FeatureNormGradients found(x, weight, mean, inverse_deviation, grad_output,
                                     take_earlier());
    std::vector<Tensor> gradients(3);
    gradients[0] = found.dx;
    if (needs(1)) gradients[1] = sum_rows(found.products);  // dw = Σ dy n   [features]
    if (needs(2)) gradients[2] = sum_rows(found.totals);    // db = Σ dy     [features]
    return gradients;
  }

  Tensor x, weight, mean, inverse_deviation;
};

struct RmsNormNode final : Node {
  RmsNormNode(Tensor x_, Tensor weight_, Tensor inverse_root_)
      : x(std::move(x_)), weight(std::move(weight_)), inverse_root(std::move(inverse_root_)) {}
  std::string_view name() const override { return "rms_norm"; }
  std::vector<Tensor*> saved() override { return {&x, &weight, &inverse_root}; }
  bool adds_to_first() const override { return true; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    // With n = x ρ, g = dy w: dx = ρ (g − n ⟨g n⟩)   [..., features]
    const FeatureNormGradients found(x, weight, Tensor(), inverse_root, grad_output,
                                     take_earlier());
    std::vector<Tensor> gradients(2);
    gradients[0] = found.dx;
    if (needs(1)) gradients[1] = sum_rows(found.products);  // dw = Σ dy n   [features]
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
  bool adds_to_first() const override { return true; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, Order::RowMajor);  // dy [batch, channels, ...]
    const Shape sums{problem.batch, problem.channels};
    Tensor earlier = take_earlier();
    if (earlier.defined()) earlier = reordered(earlier, Order::RowMajor);
    const bool is_own = earlier.defined() && earlier.unique();
    Tensor dx = is_own ? earlier : Tensor::empty(x.shape());
    Tensor products = Tensor::empty(sums), totals = Tensor::empty(sums);
    // With n = (x − mean) ρ, g = dy w: dx = ρ (g − ⟨g⟩ − n ⟨g n⟩)   [batch, channels, ...]
    group_norm_gradient(problem, x.data(), weight.data(), mean.data(), inverse_deviation.data(),
                        dy.data(), earlier.defined() ? earlier.data() : nullptr, dx.mutable_data(),
                        products.mutable_data(), totals.mutable_data());
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

// The order of a norm over the last dimension: the reference supports only rows.
Order norm_order(const Tensor& x) {
  const bool is_slabs = x.order() == Order::BatchSlabs && !use_reference_kernels();
  return is_slabs ? Order::BatchSlabs : Order::RowMajor;
}

// The input of a norm over the features: x's value, or both values of a deferred sum x. The norm
// then computes the sum, and x has its value after `settle`.
class NormInput {
 public:
  explicit NormInput(const Variable& x) : sum_of_(deferred_sum(x)) {
    if (sum_of_ == nullptr) {
      value_ = reordered(x.value(), norm_order(x.value()));
      return;
    }
    const Order order = norm_order(sum_of_->left());
    left_ = reordered(sum_of_->left(), order);
    right_ = reordered(sum_of_->right(), order);
    value_ = Tensor::empty(x.shape(), order);
  }
  const float* left() const { return (is_sum() ? left_ : value_).data(order()); }
  const float* right() const { return right_.data(order()); }
  float* sum() { return value_.mutable_data(order()); }
  bool is_sum() const { return sum_of_ != nullptr; }
  Order order() const { return value_.order(); }
  // The value that was normalized.
  Tensor settled() {
    if (sum_of_ != nullptr) sum_of_->set_value(value_);
    return value_;
  }
  // Room for one number per row, including the last slab's padding.
  Shape statistics() const {
    const int64_t rows = value_.shape().batch();
    return Shape{order() == Order::RowMajor ? rows : norm_row_blocks(rows) * kSlabWidth};
  }

 private:
  DeferredSum* sum_of_;  // the variable's, until it has its value
  Tensor left_, right_, value_;
};

// The deferred sum x of two row-major values, else null: other orders would need a conversion of
// both.
DeferredSum* deferred_sum_of_rows(const Variable& x) {
  DeferredSum* sum = deferred_sum(x);
  const bool is_of_rows = sum != nullptr && sum->left().order() == Order::RowMajor &&
                          sum->right().order() == Order::RowMajor;
  return is_of_rows ? sum : nullptr;
}

// The kernels of this name, not the operations.
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
  NormInput input(x);
  const bool in_slabs = input.order() == Order::BatchSlabs;
  Tensor y = Tensor::empty(shape, input.order());
  Tensor mean = Tensor::empty(input.statistics()),
         inverse_deviation = Tensor::empty(input.statistics());
  const NormShape rows{shape.batch(), shape.features()};
  const float *w = weight.value().data(), *b = bias.value().data();
  float *into = y.mutable_data(input.order()), *means = mean.mutable_data(),
        *deviations = inverse_deviation.mutable_data();
  if (input.is_sum()) {
    (in_slabs ? norm_slabs_of_sum : layer_norm_of_sum)(
        rows, options.eps, input.left(), input.right(), w, b, input.sum(), into, means, deviations);
  } else {
    (in_slabs ? norm_slabs : layer_norm_rows)(rows, options.eps, input.left(), w, b, into, means,
                                              deviations);
  }
  return record<LayerNormNode>(std::move(y), {x, weight, bias}, input.settled(), weight.value(),
                               mean, inverse_deviation);
}

Variable rms_norm(const Variable& x, const Variable& weight, const RmsNormOptions& options) {
  const Shape& shape = x.shape();
  if (shape.rank() < 1 || weight.shape() != Shape{shape.features()}) {
    throw ShapeError("rms_norm: x " + shape.to_string() + " needs a weight of shape " +
                     Shape{shape.features()}.to_string() + ", found " + weight.shape().to_string());
  }
  NormInput input(x);
  const bool in_slabs = input.order() == Order::BatchSlabs;
  const NormShape rows{shape.batch(), shape.features()};
  Tensor y = Tensor::empty(shape, input.order()), inverse_root = Tensor::empty(input.statistics());
  const float* w = weight.value().data();
  float *into = y.mutable_data(input.order()), *roots = inverse_root.mutable_data();
  if (input.is_sum() && in_slabs) {
    norm_slabs_of_sum(rows, options.eps, input.left(), input.right(), w, nullptr, input.sum(), into,
                      nullptr, roots);
  } else if (input.is_sum()) {
    rms_norm_of_sum(rows, options.eps, input.left(), input.right(), w, input.sum(), into, roots);
  } else if (in_slabs) {
    norm_slabs(rows, options.eps, input.left(), w, nullptr, into, nullptr, roots);
  } else {
    rms_norm(rows, options.eps, input.left(), w, into, roots);
  }
  return record<RmsNormNode>(std::move(y), {x, weight}, input.settled(), weight.value(),
                             inverse_root);
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
  const Shape groups{problem.batch, problem.groups};
  Tensor rows, y = Tensor::empty(shape), mean = Tensor::empty(groups),
               inverse_deviation = Tensor::empty(groups);
  const float *w = weight.value().data(), *b = bias.value().data();
  float *means = mean.mutable_data(), *deviations = inverse_deviation.mutable_data();
  if (DeferredSum* sum = deferred_sum_of_rows(x)) {
    rows = Tensor::empty(shape);
    group_norm_of_sum(problem, options.eps, sum->left().data(), sum->right().data(), w, b,
                      rows.mutable_data(), y.mutable_data(), means, deviations);
    sum->set_value(rows);
  } else {
    rows = reordered(x.value(), Order::RowMajor);
    group_norm(problem, options.eps, rows.data(), w, b, y.mutable_data(), means, deviations);
  }
  return record<GroupNormNode>(std::move(y), {x, weight, bias}, problem, rows, weight.value(), mean,
                               inverse_deviation);
}

}  // namespace lacuna
