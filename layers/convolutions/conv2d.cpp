#include "lacuna/layers/convolutions/conv2d.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>

#include "lacuna/framework/autograd/int8/int8_convolution.hpp"
#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"
#include "lacuna/layers/convolutions/convolution_parts.hpp"

namespace lacuna {

Conv2d::Conv2d(const Options& options) : options_(options) {
  const int64_t in = options.in_channels, out = options.out_channels, groups = options.groups;
  const Extent& k = options.kernel;
  if (in < 1 || out < 1 || k.height < 1 || k.width < 1) {
    throw ConfigError(fmt::format(
        "conv2d: in_channels, out_channels and kernel must be at least 1, found {}, {} and {}", in,
        out, k.to_string()));
  }
  require_divisible("conv2d", in, out, groups);
  make_parameters({out, in / groups, k.height, k.width}, WeightUse::Convolution,
                  {options.bias, options.init, options.init_fan_in});
  if (options.image.height > 0 && options.image.width > 0) {
    weight()->convolution = ConvolutionShape{.in_channels = in,
                                             .out_channels = out,
                                             .groups = groups,
                                             .image = options.image,
                                             .window = {.kernel = k,
                                                        .stride = options.stride,
                                                        .padding = options.padding,
                                                        .dilation = options.dilation}};
  }
}

Shape Conv2d::output_shape(const Shape& input) const {
  if (input.rank() != 3 || input[0] != options_.in_channels) {
    throw ShapeError(fmt::format(
        "layer '{}' (conv2d): a weight of shape {} needs examples of shape [{}, height, width], "
        "found {}",
        path(), weight()->shape().to_string(), options_.in_channels, input.to_string()));
  }
  const Window window{options_.kernel, options_.stride, options_.padding, options_.dilation};
  const Extent size =
      window.output({input[1], input[2]}, fmt::format("layer '{}' (conv2d)", path()));
  return {options_.out_channels, size.height, size.width};
}

int64_t Conv2d::uses_per_weight(const Shape& example) const {
  const Shape output = output_shape(example);
  return output[1] * output[2];
}

void Conv2d::run_in_int8(std::shared_ptr<const Int8ConvolutionLayer> quantized) {
  int8_ = std::move(quantized);
  in_int8_ = ParameterVersions({weight(), bias()});
}

Variable Conv2d::forward(const Variable& input) {
  if (int8_ != nullptr) {
    in_int8_.require_unchanged(*this, "runs in int8");
    return int8_conv2d(input, int8_);
  }
  return conv2d(input, weight(), bias_variable(),
                {.stride = options_.stride,
                 .padding = options_.padding,
                 .dilation = options_.dilation,
                 .groups = options_.groups,
                 .algorithms = algorithms_,
                 .is_read_in_slabs = is_read_in_slabs()});
}

bool Conv2d::is_read_in_slabs() const {
  return std::ranges::any_of(readers_, [](const ParameterPtr& weight) {
    const ConvolutionShape& shape = *weight->convolution;
    return weight->pattern()->layout().convolutions(shape).order(shape) == Order::ImageSlabs;
  });
}

void Conv2d::find_readers(Module& model) {
  std::vector<Conv2d*> open;  // those whose readers are not all known
  for (Module* module : model.modules()) {
    auto* convolution = dynamic_cast<Conv2d*>(module);
    if (convolution == nullptr || !convolution->weight()->convolution) continue;
    for (Conv2d* before : open) before->readers_.push_back(convolution->weight());
    // A shortcut of 1 × 1 reads the same input as its branch.
    if (convolution->options_.kernel != Extent{1, 1}) open.clear();
    open.push_back(convolution);
    convolution->readers_.clear();
  }
}

namespace {

LayerPtr make_conv2d(const Config& options, const Shape& input) {
  const auto out = options.required<int64_t>("out_channels");
  options.at("kernel");
  const int64_t in = read_channels(options, "in_channels", input, kImages);
  const int64_t groups = read_groups(options, input, out);
  return std::make_unique<Conv2d>(
      Conv2d::Options{.in_channels = in,
                      .out_channels = require_at_least(options, "out_channels", out, 1),
                      .kernel = read_extent(options, "kernel", {3, 3}, 1),
                      .stride = read_extent(options, "stride", {1, 1}, 1),
                      .padding = read_extent(options, "padding", {0, 0}, 0),
                      .dilation = read_extent(options, "dilation", {1, 1}, 1),
                      .groups = groups,
                      .bias = options.get("bias", true),
                      .image = {input[1], input[2]},
                      .init = read_weight_init(options, "init"),
                      .init_fan_in = read_fan_in(options, "init_fan_in")});
}

std::string write_conv2d(OnnxGraph& graph, const Conv2d& layer, const std::string& x,
                         const Shape& example) {
  const Conv2d::Options& o = layer.options();
  return write_convolution(graph, layer, o.groups, x,
                           {{"kernel_shape", sizes(o.kernel, example)},
                            {"strides", sizes(o.stride, example)},
                            {"pads", both_ends(o.padding, example)},
                            {"dilations", sizes(o.dilation, example)}});
}

UnitAxis units_of_conv2d(UnitGraph& graph, const Conv2d& layer, const UnitAxis& input,
                         const Shape& example) {
  return units_of_convolution(graph, layer, layer.options().groups, input, example);
}

}  // namespace

void register_conv2d(LayerRegistry& registry) {
  registry.add("conv2d",
               "y = w ∗ x + b: out_channels, kernel, stride, padding, dilation, groups, bias, "
               "in_channels, init, init_fan_in",
               {.make = make_conv2d,
                .has_fan_in = true,
                .onnx = onnx_form(write_conv2d),
                .units = unit_form(units_of_conv2d)});
}

}  // namespace lacuna
