// Scores of units of weights: what selections of blocks and of shared columns compare.
#pragma once

#include <cstdint>

#include "lacuna/framework/config/pattern_shape.h"

namespace lacuna {

/// The norm (pattern.norm()) of each unit of a row-major matrix. *Shapes:* weights [rows, columns],
/// scores [rows / pattern.unit_rows(), columns / pattern.unit_columns()]. *Requires* sides that the
/// unit's divide. *Cost:* one pass over the weights; several threads, whose number does not change
/// the result.
void block_scores(const PatternShape& pattern, const float* weights, int64_t rows, int64_t columns,
                  float* scores);

}  // namespace lacuna
