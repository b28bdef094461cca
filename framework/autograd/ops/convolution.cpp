#include "lacuna/framework/autograd/ops/convolution.h"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/autograd/ops/fused_norm.hpp"
#include "lacuna/framework/autograd/weight_inputs.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/image_slabs.hpp"
#include "lacuna/framework/kernels/conv/channel_products.hpp"
#include "lacuna/framework/kernels/conv/every_tap.hpp"
#include "lacuna/framework/kernels/dense/convolution.hpp"
#include "lacuna/framework/kernels/images/batch_norm.hpp"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/layouts/batch_sums.hpp"

namespace lacuna {
namespace {

// Values and gradients of sequences are images of height 1, under their own shapes.
Tensor as_images(const Tensor& x) { return x.viewed_as(image_shape(x.shape())); }

// The weight is not an input of the node, as in `linear`: it gets its gradient in its layout.
struct ConvolutionNode final : Node, HasChannelStatistics {
  ConvolutionNode(std::string_view name, Tensor x_, WeightReference weight_,
                  const ConvolutionShape& shape_, ChannelStatistics statistics)
      : x(std::move(x_)),
        weight(std::move(weight_)),
        shape(shape_),
        name_(name),
        statistics_(std::move(statistics)) {}

  std::string_view name() const override { return name_; }
  std::vector<Tensor*> saved() override { return {&x}; }
  const ChannelStatistics& statistics() const override { return statistics_; }

  std::vector<Tensor> backward(const Tensor& grad_output) override {
    // Converted to the order of the products once, for both gradients.
    const Tensor dy = as_images(reordered(
        grad_output, x.order() == Order::ImageSlabs ? Order::ImageSlabs
                                                    : dense_image_order(shape.out_channels)));
    std::vector<Tensor> gradients(3);
    if (needs(0)) {  // dX = W ∗ᵀ dY                          [batch, in, height, width]
      weight.require_unchanged();
      gradients[0] = weight.pattern->layout()
                         .convolutions(shape)
                         .input_gradient(weight.view(), shape, dy)
                         .viewed_as(inputs()[0].shape());
    }
    if (weight.sink != nullptr) {  // dW
      const BatchSums sums(needs(1) ? dy : Tensor(), shape.out_channels);
      weight.sink->accumulate_convolution(shape, dy, x);
      gradients[1] = sums.made();
    }
    // db = Σ dY, if the product did not compute it                                        [out]
    if (needs(1) && !gradients[1].defined()) gradients[1] = sum_channels(dy);
    return gradients;
  }

  Tensor x;
  WeightReference weight;
  ConvolutionShape shape;

 private:
  std::string_view name_;  // a literal
  ChannelStatistics statistics_;
};

/// The differences between convolutions of images and of sequences in messages.
struct Kind {
  const char* name;
  const char* input;       // the dimensions after the channels
  const char* inputs_are;  // "images"
  int rank;
};
constexpr Kind kImages{"conv2d", "height, width", "images", 4};
constexpr Kind kSequences{"conv1d", "length", "sequences", 3};

void require_fit(const Kind& kind, const Shape& x, const WeightReference& weight, int64_t groups,
                 const Variable& bias) {
  const Shape& w = weight.pattern->shape();
  if (x.rank() != kind.rank || w.rank() != kind.rank || groups < 1 || w[0] % groups != 0 ||
      x[1] != w[1] * groups) {
    throw ShapeError(fmt::format(
        "{} '{}': a weight of shape {}{} needs {} [batch, {}, {}], found {}", kind.name,
        weight.name, w.to_string(), groups == 1 ? "" : fmt::format(" in {} groups", groups),
        kind.inputs_are, w.rank() == kind.rank ? w[1] * groups : 0, kind.input, x.to_string()));
  }
  if (bias.defined() && bias.shape() != Shape{w[0]}) {
    throw ShapeError(fmt::format("{} '{}': a weight of shape {} needs a bias [{}], found {}",
                                 kind.name, weight.name, w.to_string(), w[0],
                                 bias.shape().to_string()));
  }
}

// *Requires* a kernel that fits. y has the shape of images. A convolution without a bias is assumed
// to be followed by a normalization: the moments of its output are cheap while it is computed, and
// cost another read later.
Tensor product(const Variable& x, const WeightReference& weight, const Variable& bias,
               const ConvolutionShape& shape, bool is_read_in_slabs, Tensor& input,
               ChannelStatistics& statistics) {
  const ConvolutionProducts& products = weight.pattern->layout().convolutions(shape);
  // Images of sparse convolutions stay in slabs after a dense convolution that can read them. Few
  // channels are converted before, not many after the product.
  const bool stays_in_slabs = x.value().order() == Order::ImageSlabs && has_channel_products(shape);
  const bool begins_slabs =
      is_read_in_slabs && shape.batch >= kImageSlabWidth && has_every_tap_products(shape);
  input = as_images(reordered(
      x.value(), stays_in_slabs || begins_slabs ? Order::ImageSlabs : products.order(shape)));
  if (!bias.defined() && grad_enabled()) {
    return products.forward(weight.view(), shape, input, Tensor(), &statistics);
  }
  return products.forward(weight.view(), shape, input, bias.defined() ? bias.value() : Tensor());
}

// The weight's anchor: a leaf, if the weight needs a gradient.
Variable anchor_of(const WeightReference& weight) {
  return weight.sink != nullptr ? Variable::leaf(Tensor()) : Variable();
}

// *Errors:* ShapeError if operands do not fit, or if the kernel is larger than the padded image.
ConvolutionShape shape_of(const Variable& x, const WeightReference& weight, const Variable& bias,
                          const Conv2dOptions& options) {
  require_fit(kImages, x.shape(), weight, options.groups, bias);
  const Shape &images = x.shape(), &w = weight.pattern->shape();
  const ConvolutionShape shape{.batch = images[0],
                               .in_channels = images[1],
                               .out_channels = w[0],
                               .groups = options.groups,
                               .image = {images[2], images[3]},
                               .window = {.kernel = {w[2], w[3]},
                                          .stride = options.stride,
                                          .padding = options.padding,
                                          .dilation = options.dilation},
                               .algorithms = options.algorithms};
  shape.window.output(shape.image, "conv2d '" + weight.name + "'");
  return shape;
}

ConvolutionShape shape_of(const Variable& x, const WeightReference& weight, const Variable& bias,
                          const Conv1dOptions& options) {
  require_fit(kSequences, x.shape(), weight, options.groups, bias);
  const Shape &sequences = x.shape(), &w = weight.pattern->shape();
  const LengthWindow window{w[2], options.stride, options.padding, options.dilation};
  window.output(sequences[2], "conv1d '" + weight.name + "'");
  return {.batch = sequences[0],
          .in_channels = sequences[1],
          .out_channels = w[0],
          .groups = options.groups,
          .image = {1, sequences[2]},
          .window = window.on_images()};
}

// The operation's view of a parameter, after the watcher of inputs has seen it.
template <class Options>
WeightReference shown(const Variable& x, const ParameterPtr& weight, const Variable& bias,
                      const Options& options) {
  WeightReference reference = weight->as_weight(weight->trainable ? weight : nullptr);
  if (const WeightInputWatcher* watcher = weight_input_watcher()) {
    const ConvolutionShape shape = shape_of(x, reference, bias, options);
    (*watcher)(weight, x, &shape);
  }
  return reference;
}

}  // namespace

Variable conv2d(const Variable& x, const WeightReference& weight, const Variable& bias,
                const Conv2dOptions& options) {
  const ConvolutionShape shape = shape_of(x, weight, bias, options);
  ChannelStatistics statistics;
  Tensor input, y = product(x, weight, bias, shape, options.is_read_in_slabs, input, statistics);
  return record<ConvolutionNode>(std::move(y), {x, bias, anchor_of(weight)}, kImages.name, input,
                                 weight, shape, std::move(statistics));
}

Variable conv2d(const Variable& x, const ParameterPtr& weight, const Variable& bias,
                const Conv2dOptions& options) {
  return conv2d(x, shown(x, weight, bias, options), bias, options);
}

Variable conv1d(const Variable& x, const WeightReference& weight, const Variable& bias,
                const Conv1dOptions& options) {
  const ConvolutionShape shape = shape_of(x, weight, bias, options);
  ChannelStatistics statistics;
  Tensor input;
  const Tensor y = product(x, weight, bias, shape, false, input, statistics);
  return record<ConvolutionNode>(
      y.viewed_as({shape.batch, shape.out_channels, shape.output().width}),
      {x, bias, anchor_of(weight)}, kSequences.name, input, weight, shape, std::move(statistics));
}

Variable conv1d(const Variable& x, const ParameterPtr& weight, const Variable& bias,
                const Conv1dOptions& options) {
  return conv1d(x, shown(x, weight, bias, options), bias, options);
}

}  // namespace lacuna
