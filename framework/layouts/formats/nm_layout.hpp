// The N:M layouts: each group of M consecutive inputs of an output has at most N weights.
#pragma once

#include <memory>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

/// The layout that stores the slots (kernels/nm/nm.hpp) of an N:M pattern whose rows are
/// independent. Its make_index() throws ShapeError if the group size does not divide the columns
/// (and, for a transposable pattern, if four does not divide the rows), or if a group has more than
/// n nonzeros. Unused slots of groups with fewer nonzeros hold zeros.
///
/// The input gradient dY W is computed in one of three ways, by pattern and lifetime:
///
/// | pattern               | many steps                                  | one step              |
/// |-----------------------|---------------------------------------------|-----------------------|
/// | transposable          | N:M product of the transposed matrix        | the same              |
/// | any other             | product of the transposed stream (csr)      | dense product         |
///
/// *Requires* pattern.is_nm() and unit_rows() of 1.
std::unique_ptr<const Layout> make_nm_layout(const PatternShape& pattern);

}  // namespace lacuna
