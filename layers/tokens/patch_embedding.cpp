#include "lacuna/layers/tokens/patch_embedding.h"

#include <fmt/core.h>

#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/autograd/ops/shape.h"
#include "lacuna/framework/core/error.h"

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

}  // namespace lacuna
