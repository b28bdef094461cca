// Which layout is fastest for a pattern: what `layout: auto` goes by.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

/// The layout in which a linear layer's weight of this shape, with nnz nonzeros, trains fastest at
/// a batch size: masked or csr.
const Layout& choose_layout(const Shape& shape, int64_t nnz, int64_t batch);

}  // namespace lacuna
