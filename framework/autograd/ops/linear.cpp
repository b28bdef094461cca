#include "lacuna/framework/autograd/ops/linear.h"

#include <fmt/core.h>

#include <algorithm>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/linear_sparse_input.hpp"
#include "lacuna/framework/autograd/weight_inputs.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/rowwise/reduce.hpp"
#include "lacuna/framework/layouts/batch_sums.hpp"

namespace lacuna {
namespace {

// The weight is not an input of the node: it receives dYᵀX itself, in its own layout. The variable
// `anchor` represents it, so that the node is recorded if only the weight needs a gradient.
struct LinearNode final : Node {
  LinearNode(Tensor x_, WeightReference weight_) : x(std::move(x_)), weight(std::move(weight_)) {}

  std::string_view name() const override { return "linear"; }
  std::vector<Tensor*> saved() override { return {&x}; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    const Tensor dy = reordered(grad_output, x.order());  // dy [..., out]
    std::vector<Tensor> gradients(3);
    if (needs(0)) {  // dX = dY W                                [..., in]
      weight.require_unchanged();
      gradients[0] = weight.pattern->layout().input_gradient(weight.view(), dy);
    }
    if (weight.sink != nullptr) {  // dW = dYᵀ X                 [out, in]
      const BatchSums sums(needs(1) ? dy : Tensor(), dy.shape().features());
      weight.sink->accumulate_product(dy, x);
      gradients[1] = sums.made();
    }
    // db = Σ dY, if the product did not compute it              [out]
    if (needs(1) && !gradients[1].defined()) gradients[1] = sum_rows(dy);
    return gradients;
  }

  Tensor x;
  WeightReference weight;
};

void require_fit(const Variable& x, const WeightReference& weight, const Variable& bias) {
  const Shape& shape = weight.pattern->shape();
  if (shape.rank() != 2 || x.shape().rank() < 1 || x.shape().features() != shape[1]) {
    throw ShapeError(fmt::format(
        "linear '{}': a weight of shape {} needs inputs [..., {}], found {}", weight.name,
        shape.to_string(), shape[shape.rank() - 1], x.shape().to_string()));
  }
  if (bias.defined() && bias.shape() != Shape{shape[0]}) {
    throw ShapeError(fmt::format("linear '{}': a weight of shape {} needs a bias [{}], found {}",
                                 weight.name, shape.to_string(), shape[0],
                                 bias.shape().to_string()));
  }
}

}  // namespace

Variable linear(const Variable& x, const WeightReference& weight, const Variable& bias) {
  require_fit(x, weight, bias);
  const Shape& shape = weight.pattern->shape();
  if (linear_sparse_input_pays(x, weight)) return linear_sparse_input(x, weight, bias);
  const Layout& layout = weight.pattern->layout();
  // The gradients of a pattern for one step are dense products, so x stays in its order.
  const Order order = weight.pattern->lifetime() == PatternLifetime::OneStep
                          ? x.value().order()
                          : layout.order(x.shape().batch(), std::max(shape[0], shape[1]));
  const Tensor input = reordered(x.value(), order);
  Tensor y = layout.forward(weight.view(), input, bias.defined() ? bias.value() : Tensor());
  const Variable anchor = weight.sink != nullptr ? Variable::leaf(Tensor()) : Variable();
  return record<LinearNode>(std::move(y), {x, bias, anchor}, input, weight);
}

Variable linear(const Variable& x, const ParameterPtr& weight, const Variable& bias) {
  const WeightReference reference = weight->as_weight(weight->trainable ? weight : nullptr);
  if (const WeightInputWatcher* watcher = weight_input_watcher()) {
    require_fit(x, reference, bias);
    (*watcher)(weight, x, nullptr);
  }
  return linear(x, reference, bias);
}

}  // namespace lacuna
