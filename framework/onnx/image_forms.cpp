// Layers of images and sequences: convolutions, pooling.
#include "lacuna/framework/onnx/layer_forms.hpp"
#include "lacuna/layers/convolutions/conv1d.h"
#include "lacuna/layers/convolutions/conv2d.h"
#include "lacuna/layers/convolutions/pooling.h"

namespace lacuna {
namespace {

using Sizes = std::vector<int64_t>;

// The part of an extent that examples of this rank have: sequences are images of height 1.
Sizes sizes(Extent extent, const Shape& example) {
  return example.rank() == 2 ? Sizes{extent.width} : Sizes{extent.height, extent.width};
}

// The same padding at the beginning and the end of each dimension.
Sizes both_ends(Extent padding, const Shape& example) {
  Sizes pads = sizes(padding, example);
  pads.insert(pads.end(), pads.begin(), pads.end());
  return pads;
}

template <class Layer>
std::string write_convolution(OnnxGraph& graph, const Layer& layer, const std::string& x,
                              OnnxGraph::Attributes attributes) {
  OnnxGraph::Names inputs{x, graph.parameter(*layer.weight())};
  if (layer.bias() != nullptr) inputs.push_back(graph.parameter(*layer.bias()));
  attributes.push_back({"group", layer.options().groups});
  return graph.add("Conv", inputs, std::move(attributes));
}

std::string write_conv1d(OnnxGraph& graph, const Conv1d& layer, const std::string& x,
                         const Shape&) {
  const Conv1d::Options& o = layer.options();
  return write_convolution(graph, layer, x,
                           {{"kernel_shape", Sizes{o.kernel}},
                            {"strides", Sizes{o.stride}},
                            {"pads", Sizes{o.padding, o.padding}},
                            {"dilations", Sizes{o.dilation}}});
}

std::string write_conv2d(OnnxGraph& graph, const Conv2d& layer, const std::string& x,
                         const Shape& example) {
  const Conv2d::Options& o = layer.options();
  return write_convolution(graph, layer, x,
                           {{"kernel_shape", sizes(o.kernel, example)},
                            {"strides", sizes(o.stride, example)},
                            {"pads", both_ends(o.padding, example)},
                            {"dilations", sizes(o.dilation, example)}});
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

// Every stride-th pixel is the largest of a window of one.
std::string write_subsample_pad(OnnxGraph& graph, const SubsamplePad& layer, const std::string& x,
                                const Shape& example) {
  const SubsamplePad::Options& o = layer.options();
  const std::string pixels = graph.add(
      "MaxPool", {x}, {{"kernel_shape", Sizes{1, 1}}, {"strides", sizes(o.stride, example)}});
  const int64_t missing = o.channels - example[0], before = missing / 2;
  if (missing == 0) return pixels;
  return graph.add("Pad", {pixels, graph.integers({0, before, 0, 0, 0, missing - before, 0, 0})});
}

}  // namespace

void add_image_forms(LayerForms& forms) {
  add_form<AvgPool2d>(forms, write_avg_pool);
  add_form<Conv1d>(forms, write_conv1d);
  add_form<Conv2d>(forms, write_conv2d);
  add_form<GlobalAveragePool>(forms, write_global_average);
  add_form<MaxPool2d>(forms, write_max_pool);
  add_form<SubsamplePad>(forms, write_subsample_pad);
}

}  // namespace lacuna
