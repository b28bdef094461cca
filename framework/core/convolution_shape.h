// ConvolutionShape: the sizes of a convolution, and of pooling, whose windows move in the same way.
#pragma once

#include <cstdint>
#include <string>

#include "lacuna/framework/core/shape.h"

namespace lacuna {

/// A height and a width, in pixels.
struct Extent {
  int64_t height = 1, width = 1;
  friend bool operator==(const Extent&, const Extent&) = default;
  /// "3x3".
  std::string to_string() const;
};

/// How a kernel moves over an image: convolutions and pooling share it.
struct Window {
  Extent kernel;
  Extent stride{1, 1};
  Extent padding{0, 0};   ///< zeros around the image, on each side
  Extent dilation{1, 1};  ///< distance of neighbouring taps
  friend bool operator==(const Window&, const Window&) = default;

  /// Number of positions of the kernel on an image: ⌊(size + 2 padding − dilation (kernel − 1) − 1)
  /// / stride⌋ + 1. *Errors:* ShapeError that names `what` if the kernel does not fit, or a number
  /// is out of range.
  Extent output(const Extent& image, const std::string& what) const;
};

/// How a kernel moves along a sequence: the numbers of a Window of height 1 in its one dimension.
struct LengthWindow {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;   ///< zeros at either end
  int64_t dilation = 1;  ///< distance of neighbouring taps
  friend bool operator==(const LengthWindow&, const LengthWindow&) = default;

  /// For sequences as images of height 1.
  Window on_images() const;
  /// Number of positions of the kernel, as for Window. *Errors:* ShapeError that names `what`.
  int64_t output(int64_t length, const std::string& what) const;
};

/// How a dense product is computed: from the definition, or by Winograd's transformation if the
/// library has it, which takes fewer multiplications and rounds differently.
struct ConvolutionAlgorithm {
  static constexpr int64_t kMostBlocks = 8;

  bool is_winograd = false;
  /// Maximum number of blocks of examples, each a product in one thread. Winograd's algorithm
  /// transforms the weight again for each block.
  int64_t blocks = kMostBlocks;

  static const ConvolutionAlgorithm Direct, Winograd;
  friend bool operator==(const ConvolutionAlgorithm&, const ConvolutionAlgorithm&) = default;
};
inline constexpr ConvolutionAlgorithm ConvolutionAlgorithm::Direct{};
inline constexpr ConvolutionAlgorithm ConvolutionAlgorithm::Winograd{.is_winograd = true};

/// The algorithms of a convolution's three products.
struct ConvolutionAlgorithms {
  ConvolutionAlgorithm forward = ConvolutionAlgorithm::Direct;
  ConvolutionAlgorithm input_gradient = ConvolutionAlgorithm::Direct;
  ConvolutionAlgorithm weight_gradient = ConvolutionAlgorithm::Direct;
  friend bool operator==(const ConvolutionAlgorithms&, const ConvolutionAlgorithms&) = default;
};

/// A convolution of a batch: x [batch, in, image], weight [out, in / groups, kernel] →
/// y [batch, out, output].
struct ConvolutionShape {
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  Extent image;
  Window window;
  ConvolutionAlgorithms algorithms = {};  ///< where the products are dense

  /// *Requires* a kernel that fits.
  Extent output() const;
  int64_t taps() const { return window.kernel.height * window.kernel.width; }
  Shape weight_shape() const;
  Shape input_shape() const { return {batch, in_channels, image.height, image.width}; }
  Shape output_shape() const;
  /// Multiplications and additions of the forward product with a weight of `nonzeros`.
  double operations(int64_t nonzeros) const;
  friend bool operator==(const ConvolutionShape&, const ConvolutionShape&) = default;
};

}  // namespace lacuna
