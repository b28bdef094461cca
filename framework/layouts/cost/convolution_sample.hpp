// The smaller convolution that is measured in place of one that is too large.
#pragma once

#include "lacuna/framework/core/convolution_shape.h"

namespace lacuna {

/// A convolution whose products cost the same as those of `shape`, up to a common factor: with at
/// most 64 examples, then fewer, then on a part of the images, and finally with fewer channels,
/// until a product takes at most 4·10⁹ operations and its activations at most about 250 MiB.
/// *Requires* a kernel that fits the images.
ConvolutionShape convolution_sample(const ConvolutionShape& shape);

}  // namespace lacuna
