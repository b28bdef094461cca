#include "lacuna/framework/autograd/ops/convolution.h"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/dense/convolution.h"
#include "lacuna/framework/kernels/images/batch_norm.h"
#include "lacuna/framework/kernels/pointwise/reorder.h"

namespace lacuna {
namespace {

// The weight is no input of the node, as in `linear`: it receives its gradient in its own layout.
struct Conv2dNode final : Node {
  Conv2dNode(Tensor x_, WeightReference weight_, const ConvolutionShape& shape_)
      : x(std::move(x_)), weight(std::move(weight_)), shape(shape_) {}

  std::string_view name() const override { return "conv2d"; }
  std::vector<Tensor*> saved() override { return {&x}; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    // In the order of the products, once for both.
    const Tensor dy = reordered(grad_output, x.order() == Order::ImageSlabs
                                                 ? Order::ImageSlabs
                                                 : dense_image_order(shape.out_channels));
    std::vector<Tensor> gradients(3);
    if (needs(0)) {  // dX = W ∗ᵀ dY                          [batch, in, height, width]
      gradients[0] = weight.pattern->layout().convolution_input_gradient(weight.view(), shape, dy);
    }
    if (needs(1)) gradients[1] = sum_channels(dy);  // db = Σ dY                           [out]
    if (weight.sink != nullptr) weight.sink->accumulate_convolution(shape, dy, x);  // dW
    return gradients;
  }

  Tensor x;
  WeightReference weight;
  ConvolutionShape shape;
};

ConvolutionShape shape_of(const Shape& x, const WeightReference& weight,
                          const Conv2dOptions& options) {
  const Shape& w = weight.pattern->shape();
  const int64_t groups = options.groups;
  if (x.rank() != 4 || w.rank() != 4 || groups < 1 || w[0] % groups != 0 || x[1] != w[1] * groups) {
    throw ShapeError(fmt::format(
        "conv2d '{}': a weight of shape {}{} needs images [batch, {}, height, width], found {}",
        weight.name, w.to_string(), groups == 1 ? "" : fmt::format(" in {} groups", groups),
        w.rank() == 4 ? w[1] * groups : 0, x.to_string()));
  }
  ConvolutionShape shape{.batch = x[0],
                         .in_channels = x[1],
                         .out_channels = w[0],
                         .groups = groups,
                         .image = {x[2], x[3]},
                         .window = {.kernel = {w[2], w[3]},
                                    .stride = options.stride,
                                    .padding = options.padding,
                                    .dilation = options.dilation},
                         .algorithms = options.algorithms};
  shape.window.output(shape.image, "conv2d '" + weight.name + "'");
  return shape;
}

}  // namespace

Variable conv2d(const Variable& x, const WeightReference& weight, const Variable& bias,
                const Conv2dOptions& options) {
  const ConvolutionShape shape = shape_of(x.shape(), weight, options);
  if (bias.defined() && bias.shape() != Shape{shape.out_channels}) {
    throw ShapeError(fmt::format("conv2d '{}': a weight of shape {} needs a bias [{}], found {}",
                                 weight.name, weight.pattern->shape().to_string(),
                                 shape.out_channels, bias.shape().to_string()));
  }
  const Layout& layout = weight.pattern->layout();
  const Tensor input = reordered(x.value(), layout.image_order(shape));
  Tensor y = layout.convolve(weight.view(), shape, input, bias.defined() ? bias.value() : Tensor());
  const Variable anchor = weight.sink != nullptr ? Variable::leaf(Tensor()) : Variable();
  return record<Conv2dNode>(std::move(y), {x, bias, anchor}, input, weight, shape);
}

Variable conv2d(const Variable& x, const ParameterPtr& weight, const Variable& bias,
                const Conv2dOptions& options) {
  return conv2d(x, weight->as_weight(weight->trainable ? weight : nullptr), bias, options);
}

}  // namespace lacuna
