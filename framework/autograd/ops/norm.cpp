#include "lacuna/framework/autograd/ops/norm.h"

#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/reorder.h"
#include "lacuna/framework/kernels/rowwise/norm.h"
#include "lacuna/framework/kernels/rowwise/reduce.h"

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
    const Tensor dy = reordered(grad_output, Order::RowMajor);  // dy [..., features]
    Tensor dx = Tensor::empty(x.shape()), product = Tensor::empty(x.shape());
    // With n = (x − mean) ρ, g = dy w: dx = ρ (g − ⟨g⟩ − n ⟨g n⟩)   [..., features]
    layer_norm_gradient({x.shape().batch(), x.shape().features()}, x.data(), weight.data(),
                        mean.data(), inverse_deviation.data(), dy.data(), dx.mutable_data(),
                        product.mutable_data());
    std::vector<Tensor> gradients(3);
    gradients[0] = dx;
    if (needs(1)) gradients[1] = sum_rows(product);  // dw = Σ dy n   [features]
    if (needs(2)) gradients[2] = sum_rows(dy);       // db = Σ dy     [features]
    return gradients;
  }

  Tensor x, weight, mean, inverse_deviation;
};

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
  const Tensor rows = reordered(x.value(), Order::RowMajor);
  Tensor y = Tensor::empty(shape), mean = Tensor::empty({shape.batch()});
  Tensor inverse_deviation = Tensor::empty({shape.batch()});
  layer_norm({shape.batch(), shape.features()}, options.eps, rows.data(), weight.value().data(),
             bias.value().data(), y.mutable_data(), mean.mutable_data(),
             inverse_deviation.mutable_data());
  return record<LayerNormNode>(std::move(y), {x, weight, bias}, rows, weight.value(), mean,
                               inverse_deviation);
}

}  // namespace lacuna
