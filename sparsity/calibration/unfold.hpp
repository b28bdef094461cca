// Unfolding: the rows that a convolution multiplies its weight with.
#pragma once

#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/sparsity/one_shot/input_gram.h"

namespace lacuna {

/// Adds the windows of one group's channels, a row for each place of the kernel on each image:
/// feature c·taps + t is tap t of the group's channel c, zero where it lies in the padding.
/// *Shapes:* images row-major, shape.input_shape() (or of sequences, without the height).
/// *Cost:* memory for kPlaces rows.
void add_unfolded(const Tensor& images, const ConvolutionShape& shape, int64_t group,
                  InputGram& gram);

}  // namespace lacuna
