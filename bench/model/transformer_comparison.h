// Training steps of a transformer, sparse next to dense.
#pragma once

#include <vector>

#include "common/program.h"
#include "model/layout_choice.h"
#include "model/transformer.h"

namespace lacuna::bench {

/// Measures dense; csr and auto at each of the sparsities; 2:4, grouped 2:4 and blocks of 16 × 16:
/// of these the layouts chosen. Each sparse model is measured in turns with the dense one, and then
/// let go, so that memory holds two at a time. Losses are first compared with those of layout
/// masked. *Errors:* Error when a loss differs.
void compare_transformer(const Transformer& transformer, const std::vector<double>& sparsities,
                         const LayoutChoice& layouts, const MeasureOptions& options,
                         const Settings& settings, Report& report);

}  // namespace lacuna::bench
