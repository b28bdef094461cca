// The parts of the csr layout: its storage, convolutions, and csr under the name of a pattern.
#pragma once

#include <memory>
#include <span>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

/// The storage of csr's values: in stream order for linear weights, by rows for convolutions.
class CsrStorage : public PatternIndex {
 public:
  virtual Positions positions() const = 0;
  /// As StorageFormat's.
  virtual void compact(std::span<const float> stored, std::span<float> elements) const = 0;
  virtual void expand(std::span<const float> elements, std::span<float> stored) const = 0;
};

/// The storage of convolution weights: values ascend by flat index, and each size of images has its
/// streams, on which the products run.
std::shared_ptr<const PatternIndex> make_csr_convolution_index(const Positions& positions);
/// The products of convolutions without groups, on their nonzeros. Images are converted to image
/// slabs if necessary. *Requires* such storage.
const ConvolutionProducts& csr_convolutions();

/// The layout of a pattern of tiles for which there is no kernel of cells: it stores and multiplies
/// as csr does. Convolutions make the weight dense.
std::unique_ptr<const Layout> make_tiled_csr_layout(const PatternShape& pattern);

}  // namespace lacuna
