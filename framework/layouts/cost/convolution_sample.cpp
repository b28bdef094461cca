#include "lacuna/framework/layouts/cost/convolution_sample.hpp"

#include <algorithm>
#include <initializer_list>

namespace lacuna {
namespace {

constexpr double kMostOperations = 4e9;
// The cost of moving an element of an input or output, in operations.
constexpr double kOperationsOfAnElement = 64.0;
// A batch of a few slabs has the same cost per example as a larger one; less than one slab has not.
constexpr int64_t kLargestBatch = 64, kSlab = 16;
constexpr int64_t kFewestPlaces = 8, kFewestChannels = 64;

double cost_of(const ConvolutionShape& s) {
  const auto product = [](std::initializer_list<int64_t> factors) {
    double all = 1.0;
    for (const int64_t factor : factors) all *= static_cast<double>(factor);
    return all;
  };
  const Extent out = s.output();
  const double input = product({s.batch, s.in_channels, s.image.height, s.image.width}),
               output = product({s.batch, s.out_channels, out.height, out.width});
  return 2.0 * output * product({s.in_channels, s.taps()}) +
         kOperationsOfAnElement * (input + output);
}

// Cuts a side of the image, and its padding, so that the kernel has this number of places.
void cut_side(int64_t places, int64_t kernel, int64_t stride, int64_t dilation, int64_t& size,
              int64_t& padding) {
  const int64_t needed = (places - 1) * stride + dilation * (kernel - 1) + 1;
  padding = std::min(padding, (needed - 1) / 2);
  size = needed - 2 * padding;
}

// Halves one size if possible; returns whether it did.
bool halve(ConvolutionShape& s) {
  const Extent out = s.output();
  Window& w = s.window;
  if (s.batch > kSlab) {
    s.batch = std::max(kSlab, s.batch / 2);
  } else if (out.height >= out.width && out.height > kFewestPlaces) {
    cut_side(out.height / 2, w.kernel.height, w.stride.height, w.dilation.height, s.image.height,
             w.padding.height);
  } else if (out.width > kFewestPlaces) {
    cut_side(out.width / 2, w.kernel.width, w.stride.width, w.dilation.width, s.image.width,
             w.padding.width);
  } else if (s.out_channels >= s.in_channels && s.out_channels > kFewestChannels) {
    s.out_channels /= 2;
  } else if (s.in_channels > kFewestChannels) {
    s.in_channels /= 2;
  } else {
    return false;
  }
  return true;
}

}  // namespace

ConvolutionShape convolution_sample(const ConvolutionShape& shape) {
  ConvolutionShape sample = shape;
  sample.batch = std::clamp<int64_t>(shape.batch, 1, kLargestBatch);
  while (cost_of(sample) > kMostOperations && halve(sample)) {
  }
  return sample;
}

}  // namespace lacuna
