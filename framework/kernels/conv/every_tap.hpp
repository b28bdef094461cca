// Dense convolutions of few inputs by the kernels of sparse ones, on image slabs.
#pragma once

#include "lacuna/framework/kernels/conv/sparse_convolution.hpp"

namespace lacuna {

/// Whether a dense convolution may run on image slabs as a sparse one in which every position
/// exists: at most 36 multiplications make a value (3 × 3 kernels of RGB images). With more, the
/// faster loops of dense products are worth the conversion of their results.
bool has_every_tap_products(const ConvolutionShape& shape);

/// *Requires* has_every_tap_products. Values are the dense weight's. *Cost:* O(weights), little
/// compared with a product.
SparseConvolution of_every_tap(const ConvolutionShape& shape);

}  // namespace lacuna
