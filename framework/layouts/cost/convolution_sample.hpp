// What a convolution is measured by where it is too large to be measured itself.
#pragma once

#include "lacuna/framework/core/convolution_shape.h"

namespace lacuna {

/// A convolution whose products cost, to a common factor, what those of `shape` cost: of at most 64
/// examples; and of fewer, on a part of the images, and at last with fewer channels, until a
/// product is at most 4·10⁹ operations and its activations take at most some 250 MiB. *Requires* a
/// kernel that fits the images.
ConvolutionShape convolution_sample(const ConvolutionShape& shape);

}  // namespace lacuna
