// Layouts for weights whose nonzeros form tiles: N:M patterns shared by groups of rows, and
// blocks. Only the nonzeros are stored, without padding; docs/development/kernels.md describes the
// order.
#pragma once

#include <memory>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

/// Units of a multiple of four rows, and blocks with one side a multiple of four, run on the
/// kernels of kernels/blocks/block_products.hpp, others on those of csr. The layout's make_index()
/// throws ShapeError if the shape is not a multiple of the unit, or if the positions are not whole
/// units or are more than n of m. *Requires* pattern.is_structured().
std::unique_ptr<const Layout> make_block_layout(const PatternShape& pattern);

}  // namespace lacuna
