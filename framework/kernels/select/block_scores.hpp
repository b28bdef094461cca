// Scores of units of weights, for selections of blocks and of shared columns.
#pragma once

#include <cstdint>

#include "lacuna/framework/config/pattern_shape.h"

namespace lacuna {

/// The norm (pattern.norm()) of each unit of a row-major matrix. *Shapes:* weights [rows, columns],
/// scores [rows / pattern.unit_rows(), columns / pattern.unit_columns()]. *Requires* sides
/// divisible by those of the unit. *Cost:* one pass over the weights, on several threads, whose
/// number does not change the result.
void block_scores(const PatternShape& pattern, const float* weights, int64_t rows, int64_t columns,
                  float* scores);

}  // namespace lacuna
