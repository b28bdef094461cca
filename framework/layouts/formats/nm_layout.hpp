// The N:M layouts: in each group of M consecutive inputs of an output at most N weights exist.
#pragma once

#include <memory>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

/// The layout that stores the slots (kernels/nm/nm.hpp) of an N:M pattern whose rows are each on
/// their own. Its make_index() throws ShapeError when a group's size does not divide the columns
/// (and, transposable, four the rows), or when a group holds more than n. Slots that groups with
/// fewer nonzeros leave hold zeros.
///
/// The input gradient dY W has three ways, by pattern and lifetime:
///
/// | pattern               | many steps                                  | one step              |
/// |-----------------------|---------------------------------------------|-----------------------|
/// | transposable          | N:M product of the transposed matrix        | the same              |
/// | any other             | product of the transposed stream (csr)      | dense product         |
///
/// *Requires* pattern.is_nm() and unit_rows() of 1.
std::unique_ptr<const Layout> make_nm_layout(const PatternShape& pattern);

}  // namespace lacuna
