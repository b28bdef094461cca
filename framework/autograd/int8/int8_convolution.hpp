// The convolution of images in int8, whose activation, sum and next bytes are computed with it.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/kernels/int8/int8_convolution.hpp"
#include "lacuna/framework/kernels/int8/int8_pixels.hpp"

namespace lacuna {

/// A convolution whose weight is int8.
struct Int8ConvolutionLayer {
  std::string name;  ///< of the weight
  Int8Filter weight;
  Window window;  ///< of the kernel
  /// What one step of a weight is worth, for each output channel.
  std::vector<float> weight_scales;
  std::vector<float> bias;        ///< empty: none
  std::optional<Int8Grid> input;  ///< of the activations; absent: each example has its own

  /// The weight for images of that size, made when first asked for. Any number of threads may ask.
  const Int8Convolution& products(const ConvolutionShape& shape) const;
  /// For few of them.
  const Int8PixelConvolution& pixel_products(const ConvolutionShape& shape) const;

 private:
  mutable std::mutex mutex_;
  mutable std::list<Int8Convolution> made_;  // each stays where it is
  mutable std::list<Int8PixelConvolution> made_of_pixels_;
};

/// y = w ∗ x + b, without a gradient, which waits as int8_linear does. *Shapes:* x [batch,
/// channels, height, width] → [batch, rows, …]. *Errors:* ShapeError that names the weight;
/// StateError where operations are recorded.
Variable int8_conv2d(const Variable& x, std::shared_ptr<const Int8ConvolutionLayer> layer);

}  // namespace lacuna
