#include "lacuna/layers/convolutions/pooling.h"

#include <fmt/core.h>

#include <memory>
#include <string>

#include "lacuna/framework/autograd/ops/pooling.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"
#include "lacuna/layers/convolutions/convolution_parts.hpp"

namespace lacuna {
namespace {

void require_images(const Module& layer, const Shape& input) {
  if (input.rank() == 3) return;
  throw ShapeError(
      fmt::format("layer '{}' ({}): needs examples of shape [channels, height, width], found {}",
                  layer.path(), layer.type(), input.to_string()));
}

// *Errors:* ShapeError unless the input is of images or of sequences.
void require_planes(const Module& layer, const Shape& input) {
  if (input.rank() == 2 || input.rank() == 3) return;
  throw ShapeError(fmt::format(
      "layer '{}' ({}): needs examples of shape [channels, height, width] or [channels, length], "
      "found {}",
      layer.path(), layer.type(), input.to_string()));
}

Shape pooled(const Module& layer, const Shape& input, const Window& window) {
  require_planes(layer, input);
  if (2 * window.padding.height > window.kernel.height ||
      2 * window.padding.width > window.kernel.width) {
    throw ShapeError(fmt::format("layer '{}' ({}): padding {} is more than half of the kernel {}",
                                 layer.path(), layer.type(), window.padding.to_string(),
                                 window.kernel.to_string()));
  }
  const std::string what = fmt::format("layer '{}' ({})", layer.path(), layer.type());
  if (input.rank() == 2) return {input[0], window.output({1, input[1]}, what).width};
  const Extent size = window.output({input[1], input[2]}, what);
  return {input[0], size.height, size.width};
}

// The window of a pooling over images, or over sequences as images of height 1.
Window read_pooling_window(const Config& options, const Shape& input) {
  options.at("kernel");
  if (input.rank() == kSequences.rank) {
    const int64_t kernel = read_length(options, "kernel", 2, 1);
    return LengthWindow{.kernel = kernel,
                        .stride = read_length(options, "stride", kernel, 1),
                        .padding = read_length(options, "padding", 0, 0)}
        .on_images();
  }
  const Extent kernel = read_extent(options, "kernel", {2, 2}, 1);
  return {.kernel = kernel,
          .stride = read_extent(options, "stride", kernel, 1),
          .padding = read_extent(options, "padding", {0, 0}, 0)};
}

LayerPtr make_max_pool(const Config& options, const Shape& input) {
  const Window window = read_pooling_window(options, input);
  const Extent dilation = input.rank() == kSequences.rank
                              ? Extent{1, read_length(options, "dilation", 1, 1)}
                              : read_extent(options, "dilation", {1, 1}, 1);
  return std::make_unique<MaxPool2d>(MaxPool2d::Options{.kernel = window.kernel,
                                                        .stride = window.stride,
                                                        .padding = window.padding,
                                                        .dilation = dilation});
}

LayerPtr make_avg_pool(const Config& options, const Shape& input) {
  const Window window = read_pooling_window(options, input);
  return std::make_unique<AvgPool2d>(
      AvgPool2d::Options{.kernel = window.kernel,
                         .stride = window.stride,
                         .padding = window.padding,
                         .count_include_pad = options.get("count_include_pad", true)});
}

LayerPtr make_subsample_pad(const Config& options, const Shape& input) {
  require_kind(input, kImages);
  const auto channels = options.get<int64_t>("channels", input[0]);
  const auto before = options.optional<int64_t>("before");
  if (before && (*before < 0 || *before > channels - input[0])) {
    options.at("before").fail(fmt::format("channels of zeros, 0 to {}", channels - input[0]));
  }
  return std::make_unique<SubsamplePad>(
      SubsamplePad::Options{.channels = require_at_least(options, "channels", channels, 1),
                            .stride = read_extent(options, "stride", {2, 2}, 1),
                            .before = before});
}

std::string write_max_pool(OnnxGraph& graph, const MaxPool2d& layer, const std::string& x,
                           const Shape& example) {
  const MaxPool2d::Options& o = layer.options();
  return graph.add("MaxPool", {x},
                   {{"kernel_shape", sizes(o.kernel, example)},
                    {"strides", sizes(o.stride, example)},
                    {"pads", both_ends(o.padding, example)},
                    {"dilations", sizes(o.dilation, example)}});
}

std::string write_avg_pool(OnnxGraph& graph, const AvgPool2d& layer, const std::string& x,
                           const Shape& example) {
  const AvgPool2d::Options& o = layer.options();
  return graph.add("AveragePool", {x},
                   {{"kernel_shape", sizes(o.kernel, example)},
                    {"strides", sizes(o.stride, example)},
                    {"pads", both_ends(o.padding, example)},
                    {"count_include_pad", int64_t{o.count_include_pad}}});
}

std::string write_global_average(OnnxGraph& graph, const GlobalAveragePool&, const std::string& x,
                                 const Shape&) {
  return graph.add("Flatten", {graph.add("GlobalAveragePool", {x})});
}

// Selects every stride-th pixel, as the maximum of a window of one pixel.
std::string write_subsample_pad(OnnxGraph& graph, const SubsamplePad& layer, const std::string& x,
                                const Shape& example) {
  const SubsamplePad::Options& o = layer.options();
  const std::string pixels = graph.add(
      "MaxPool", {x},
      {{"kernel_shape", std::vector<int64_t>{1, 1}}, {"strides", sizes(o.stride, example)}});
  const int64_t missing = o.channels - example[0], before = o.before.value_or(missing / 2);
  if (missing == 0) return pixels;
  return graph.add("Pad", {pixels, graph.integers({0, before, 0, 0, 0, missing - before, 0, 0})});
}

UnitAxis units_of_global_average(UnitGraph& graph, const GlobalAveragePool& layer,
                                 const UnitAxis& input, const Shape& example) {
  return {0, graph.along(layer, input, example, 0)};
}

// Channels of zeros can be removed like any others: a key has the number before the input's.
UnitAxis units_of_subsample_pad(UnitGraph& graph, const SubsamplePad& layer, const UnitAxis& input,
                                const Shape& example) {
  const UnitGraph::Units in = graph.along(layer, input, example, 0);
  const int64_t missing = layer.options().channels - example[0];
  const int64_t before = layer.options().before.value_or(missing / 2);
  UnitGraph::Units out = graph.make(layer, before);
  graph.sets(layer, "before", out);
  const UnitGraph::Units after = graph.make(layer, missing - before);
  out.insert(out.end(), in.begin(), in.end());
  out.insert(out.end(), after.begin(), after.end());
  graph.sets(layer, "channels", out);
  return {0, out};
}

}  // namespace

Shape MaxPool2d::output_shape(const Shape& input) const {
  return pooled(*this, input,
                {options_.kernel, options_.stride, options_.padding, options_.dilation});
}

Variable MaxPool2d::forward(const Variable& input) {
  return max_pool2d(input, {options_.kernel, options_.stride, options_.padding, options_.dilation});
}

Shape AvgPool2d::output_shape(const Shape& input) const {
  return pooled(*this, input, {options_.kernel, options_.stride, options_.padding});
}

Variable AvgPool2d::forward(const Variable& input) {
  return avg_pool2d(input, {options_.kernel, options_.stride, options_.padding},
                    {.count_include_pad = options_.count_include_pad});
}

Shape GlobalAveragePool::output_shape(const Shape& input) const {
  require_planes(*this, input);
  return {input[0]};
}

Variable GlobalAveragePool::forward(const Variable& input) { return global_average_pool(input); }

Shape SubsamplePad::output_shape(const Shape& input) const {
  require_images(*this, input);
  const Extent& s = options_.stride;
  if (options_.channels < input[0] || s.height < 1 || s.width < 1) {
    throw ShapeError(fmt::format(
        "layer '{}' (subsample_pad): needs a stride of at least 1 and at least the {} channels of "
        "its input {}, found stride {} and {} channels",
        path(), input[0], input.to_string(), s.to_string(), options_.channels));
  }
  return {options_.channels, (input[1] + s.height - 1) / s.height,
          (input[2] + s.width - 1) / s.width};
}

Variable SubsamplePad::forward(const Variable& input) {
  return subsample_pad(input, options_.stride, options_.channels, options_.before);
}

void register_pooling(LayerRegistry& registry) {
  registry.add("max_pool", "largest value of each window: kernel, stride, padding, dilation",
               {.make = make_max_pool, .onnx = onnx_form(write_max_pool), .units = units_kept()});
  registry.add("avg_pool", "mean of each window: kernel, stride, padding, count_include_pad",
               {.make = make_avg_pool, .onnx = onnx_form(write_avg_pool), .units = units_kept()});
  registry.add("global_average_pool", "mean of each channel",
               {.make = make_plain<GlobalAveragePool>,
                .onnx = onnx_form(write_global_average),
                .units = unit_form(units_of_global_average)});
  registry.add("subsample_pad",
               "every stride-th pixel, zeros for the missing channels: channels, stride, before",
               {.make = make_subsample_pad,
                .onnx = onnx_form(write_subsample_pad),
                .units = unit_form(units_of_subsample_pad)});
}

}  // namespace lacuna
