// The cost model behind `layout: auto`: which layout trains a weight fastest on this machine.
#pragma once

#include <functional>
#include <string>

#include "lacuna/framework/core/convolution_shape.h"
#include "lacuna/framework/layouts/layout.h"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {

/// What one training step of a linear layer's weight costs in each layout, in milliseconds: three
/// products, the gradient's masking, Adam's update. Of a pattern for one step: making it and its
/// values, two products; the rest is the same in each layout.
struct LayoutCosts {
  double masked_ms = 0.0;
  double compressed_ms = 0.0;
};

struct LayoutChoice {
  const Layout* layout = nullptr;
  LayoutCosts costs;
  std::string reason;  ///< "csr: 0.71 ms a step, masked 3.9 ms (measured here)"
};

/// Measures masked and a compressed layout for the weight's class at densities that are powers of
/// √2, and takes what lies between two of them from the line through both. What it measured it
/// keeps in memory and in a file (`LACUNA_CACHE_DIR`, else $XDG_CACHE_HOME/lacuna, else
/// ~/.cache/lacuna; nowhere when it cannot be written). A class is the shape and the rows of a
/// batch (examples, or their tokens), large ones scaled down to a sample, and the instruction set:
/// steps are timed in one thread, so that choices and with them results do not depend on the number
/// of threads. Nothing of the weight's size is allocated. *Cost:* tens of milliseconds for each
/// density of a class that is new. *Shapes:* shape [out, in] with rank 2; others are stored masked.
LayoutChoice compare_layouts(const Shape& shape, int64_t nnz, int64_t rows,
                             const Layout& compressed = csr_layout(),
                             PatternLifetime lifetime = PatternLifetime::ManySteps);

/// The same for csr as a convolution's weight, with the batch in `shape`: at random positions, on
/// images of that size, or a part of them where a product is of more than 4·10⁹ operations.
LayoutChoice compare_layouts(const ConvolutionShape& shape, int64_t nnz);

/// What is told, once in the process, when measuring has taken more than a second and goes on: for
/// whom a program would seem to hang. Empty, the default, tells nothing.
void announce_measurements(std::function<void(const std::string& text)> say);

/// For each product of a convolution that runs dense the faster algorithm, measured and kept as the
/// costs of layouts are; direct where there is no Winograd: it takes AVX-512, and kernels of 3 × 3
/// in one group, without stride and dilation.
ConvolutionAlgorithms fastest_algorithms(const ConvolutionShape& shape);

/// The largest density up to which a compressed layout is the faster one for a weight that a batch
/// multiplies that many rows by: 0 when it never is. Where the line through the costs at two
/// measured densities crosses masked's. *Cost:* some 0.1 s for a shape that is new.
double density_limit(const Shape& shape, int64_t rows, const Layout& compressed = csr_layout(),
                     PatternLifetime lifetime = PatternLifetime::ManySteps);
/// The same for csr as a convolution's weight, with the batch in `shape`. 0 where the kernel does
/// not fit the images, and for grouped convolutions, which run dense.
double density_limit(const ConvolutionShape& shape);

}  // namespace lacuna
