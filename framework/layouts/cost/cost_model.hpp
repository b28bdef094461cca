// The cost model of `layout: auto`: the layout that trains a weight fastest on this machine.
#pragma once

#include <functional>
#include <string>

#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {

/// The cost of one training step of a linear layer's weight in each layout, in milliseconds: three
/// products, the masking of the gradient, Adam's update. For a pattern for one step: the
/// computation of it and its values, and two products; the rest is the same in each layout.
struct LayoutCosts {
  double masked_ms = 0.0;
  double compressed_ms = 0.0;
};

struct LayoutChoice {
  const Layout* layout = nullptr;
  LayoutCosts costs;
  std::string reason;  ///< "csr: 0.71 ms per step, masked 3.9 ms (measured here)"
};

/// Measures masked and a compressed layout for the weight's class at densities that are powers of
/// √2, and interpolates linearly between two of them. Measurements are kept in memory and in a file
/// (in `LACUNA_CACHE_DIR`, else $XDG_CACHE_HOME/lacuna, else ~/.cache/lacuna; in none if it cannot
/// be written). A class is the shape and the rows of a batch (examples, or their tokens), large
/// ones reduced to a sample, and the instruction set. Steps are timed in one thread, so that
/// choices and results do not depend on the number of threads. Nothing of the weight's size is
/// allocated. *Cost:* tens of milliseconds for each density of a new class. *Shapes:* shape [out,
/// in] with rank 2; others are stored masked.
LayoutChoice compare_layouts(const Shape& shape, int64_t nnz, int64_t rows,
                             const Layout& compressed = csr_layout(),
                             PatternLifetime lifetime = PatternLifetime::ManySteps);

/// The same for csr as a convolution's weight, with the batch in `shape`: at random positions, on
/// images of that size, or on a part of them if a product takes more than 4·10⁹ operations.
LayoutChoice compare_layouts(const ConvolutionShape& shape, int64_t nnz);

/// Sets the receiver of a message, sent once per process if measuring has taken more than a second
/// and continues, so that a program does not seem to hang. Empty, the default: no message.
void announce_measurements(std::function<void(const std::string& text)> say);

/// The faster algorithm for each product of a convolution that runs dense, measured and kept like
/// the costs of layouts. Direct if Winograd's is not available: it requires AVX-512, and kernels of
/// 3 × 3 in one group, without stride and dilation.
ConvolutionAlgorithms fastest_algorithms(const ConvolutionShape& shape);

/// The largest density up to which a compressed layout is faster for a weight that is multiplied by
/// this number of rows per batch; 0 if it never is. It is where the line through the costs at two
/// measured densities crosses masked's. *Cost:* about 0.1 s for a new shape.
double density_limit(const Shape& shape, int64_t rows, const Layout& compressed = csr_layout(),
                     PatternLifetime lifetime = PatternLifetime::ManySteps);
/// The same for csr as a convolution's weight, with the batch in `shape`. 0 if the kernel does not
/// fit the images, and for grouped convolutions, which run dense.
double density_limit(const ConvolutionShape& shape);

}  // namespace lacuna
