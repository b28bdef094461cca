#include "lacuna/layers/tokens/patch_embedding.h"

#include <fmt/core.h>

#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/autograd/ops/shape.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_options.hpp"

namespace lacuna {

PatchEmbedding::PatchEmbedding(const Options& options) : options_(options) {
  const Extent& p = options.patch;
  if (options.channels < 1 || options.features < 1 || p.height < 1 || p.width < 1) {
    throw ConfigError(fmt::format(
        "patch_embedding: channels, features and patch must be at least 1, found {}, {} and {}",
        options.channels, options.features, p.to_string()));
  }
  make_parameters({options.features, options.channels, p.height, p.width}, WeightUse::Convolution,
                  {.bias = options.bias, .init = options.init});
  if (options.image.height > 0 && options.image.width > 0) {
    weight()->convolution = ConvolutionShape{.in_channels = options.channels,
                                             .out_channels = options.features,
                                             .image = options.image,
                                             .window = {.kernel = p, .stride = p}};
  }
}

Shape PatchEmbedding::output_shape(const Shape& input) const {
  const Extent& p = options_.patch;
  if (input.rank() != 3 || input[0] != options_.channels) {
    throw ShapeError(fmt::format(
        "layer '{}' (patch_embedding): a weight of shape {} needs examples of shape [{}, height, "
        "width], found {}",
        path(), weight()->shape().to_string(), options_.channels, input.to_string()));
  }
  if (input[1] < 1 || input[2] < 1 || input[1] % p.height != 0 || input[2] % p.width != 0) {
    throw ShapeError(
        fmt::format("layer '{}' (patch_embedding): patches of {} do not cover images of shape {}",
                    path(), p.to_string(), input.to_string()));
  }
  return {input[1] / p.height * (input[2] / p.width), options_.features};
}

Variable PatchEmbedding::forward(const Variable& input) {
  const Shape tokens = output_shape(input.shape().without_batch());
  const Variable y = conv2d(input, weight(), bias_variable(), {.stride = options_.patch});
  // [batch, features, rows, columns] → [batch, features, patches] → [batch, patches, features]
  return transpose(reshape(y, {input.shape()[0], tokens[1], tokens[0]}));
}

namespace {

LayerPtr make_patch_embedding(const Config& options, const Shape& input) {
  options.at("patch");
  const int64_t channels = read_channels(options, "channels", input);
  if (!options.get("image").is_null()) {
    const Extent image = read_extent(options, "image", {}, 1);
    if (image != Extent{input[1], input[2]}) {
      options.at("image").error(fmt::format(
          "is {}, but the images have shape {}; give {}, or leave it out", image.to_string(),
          input.to_string(), Extent{input[1], input[2]}.to_string()));
    }
  }
  return make_at<PatchEmbedding>(options, {.channels = channels,
                                           .features = required_size(options, "features"),
                                           .patch = read_extent(options, "patch", {16, 16}, 1),
                                           .bias = options.get("bias", true),
                                           .image = {input[1], input[2]},
                                           .init = read_weight_init(options, "init")});
}

std::string write_patches(OnnxGraph& graph, const PatchEmbedding& layer, const std::string& x,
                          const Shape&) {
  const Extent patch = layer.options().patch;
  const std::vector<int64_t> sizes{patch.height, patch.width};
  OnnxGraph::Names inputs{x, graph.parameter(*layer.weight())};
  if (layer.bias() != nullptr) inputs.push_back(graph.parameter(*layer.bias()));
  const std::string y = graph.add("Conv", inputs, {{"kernel_shape", sizes}, {"strides", sizes}});
  return graph.transpose(graph.reshape(y, {0, layer.options().features, -1}), {0, 2, 1});
}

UnitAxis units_of_patches(UnitGraph& graph, const PatchEmbedding& layer, const UnitAxis& input,
                          const Shape& example) {
  const UnitGraph::Units in = graph.along(layer, input, example, 0);
  const UnitGraph::Units out = graph.make(layer, layer.options().features);
  graph.takes(layer.weight(), 1, in);
  graph.gives(layer.weight(), 0, out);
  graph.gives(layer.bias(), 0, out);
  graph.counts(layer, "channels", in);
  graph.sets(layer, "features", out);
  return {1, out};
}

}  // namespace

void register_patch_embedding(LayerRegistry& registry) {
  registry.add("patch_embedding",
               "a vector for each patch of images: patch, features, bias, init, image",
               {.make = make_patch_embedding,
                .onnx = onnx_form(write_patches),
                .units = unit_form(units_of_patches)});
}

}  // namespace lacuna
