#include "lacuna/layers/convolutions/conv1d.h"

#include <fmt/core.h>

#include <memory>
#include <string>

#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"
#include "lacuna/layers/convolutions/convolution_parts.hpp"

namespace lacuna {

Conv1d::Conv1d(const Options& options) : options_(options) {
  const int64_t in = options.in_channels, out = options.out_channels, groups = options.groups;
  if (in < 1 || out < 1 || options.kernel < 1) {
    throw ConfigError(fmt::format(
        "conv1d: in_channels, out_channels and kernel must be at least 1, found {}, {} and {}", in,
        out, options.kernel));
  }
  require_divisible("conv1d", in, out, groups);
  make_parameters({out, in / groups, options.kernel}, WeightUse::Convolution,
                  {options.bias, options.init, options.init_fan_in});
  if (options.length > 0) {
    const LengthWindow window{options.kernel, options.stride, options.padding, options.dilation};
    weight()->convolution = ConvolutionShape{.in_channels = in,
                                             .out_channels = out,
                                             .groups = groups,
                                             .image = {1, options.length},
                                             .window = window.on_images()};
  }
}

Shape Conv1d::output_shape(const Shape& input) const {
  if (input.rank() != 2 || input[0] != options_.in_channels) {
    throw ShapeError(fmt::format(
        "layer '{}' (conv1d): a weight of shape {} needs examples of shape [{}, length], found {}",
        path(), weight()->shape().to_string(), options_.in_channels, input.to_string()));
  }
  const LengthWindow window{options_.kernel, options_.stride, options_.padding, options_.dilation};
  return {options_.out_channels,
          window.output(input[1], fmt::format("layer '{}' (conv1d)", path()))};
}

int64_t Conv1d::uses_per_weight(const Shape& example) const { return output_shape(example)[1]; }

Variable Conv1d::forward(const Variable& input) {
  return conv1d(input, weight(), bias_variable(),
                {.stride = options_.stride,
                 .padding = options_.padding,
                 .dilation = options_.dilation,
                 .groups = options_.groups});
}

namespace {

LayerPtr make_conv1d(const Config& options, const Shape& input) {
  const auto out = options.required<int64_t>("out_channels");
  options.at("kernel");
  const int64_t in = read_channels(options, "in_channels", input, kSequences);
  const int64_t groups = read_groups(options, input, out);
  return std::make_unique<Conv1d>(
      Conv1d::Options{.in_channels = in,
                      .out_channels = require_at_least(options, "out_channels", out, 1),
                      .kernel = read_length(options, "kernel", 3, 1),
                      .stride = read_length(options, "stride", 1, 1),
                      .padding = read_length(options, "padding", 0, 0),
                      .dilation = read_length(options, "dilation", 1, 1),
                      .groups = groups,
                      .bias = options.get("bias", true),
                      .length = input[1],
                      .init = read_weight_init(options, "init"),
                      .init_fan_in = read_fan_in(options, "init_fan_in")});
}

std::string write_conv1d(OnnxGraph& graph, const Conv1d& layer, const std::string& x,
                         const Shape&) {
  const Conv1d::Options& o = layer.options();
  return write_convolution(graph, layer, o.groups, x,
                           {{"kernel_shape", std::vector<int64_t>{o.kernel}},
                            {"strides", std::vector<int64_t>{o.stride}},
                            {"pads", std::vector<int64_t>{o.padding, o.padding}},
                            {"dilations", std::vector<int64_t>{o.dilation}}});
}

UnitAxis units_of_conv1d(UnitGraph& graph, const Conv1d& layer, const UnitAxis& input,
                         const Shape& example) {
  return units_of_convolution(graph, layer, layer.options().groups, input, example);
}

}  // namespace

void register_conv1d(LayerRegistry& registry) {
  registry.add("conv1d",
               "y = w ∗ x + b along sequences: out_channels, kernel, stride, padding, dilation, "
               "groups, bias, in_channels, init, init_fan_in",
               {.make = make_conv1d,
                .has_fan_in = true,
                .onnx = onnx_form(write_conv1d),
                .units = unit_form(units_of_conv1d)});
}

}  // namespace lacuna
