// Weighted sums of rows of a table: sparse examples times a table, and the gradient of the table.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/accumulate.h"

namespace lacuna {

/// Sum i has the terms from begin[i] to begin[i + 1], each a row times its weight.
struct WeightedRows {
  int64_t sums = 0;
  int64_t features = 0;
  const int64_t* begin = nullptr;  ///< sums + 1
  const int64_t* rows = nullptr;   ///< of the terms
  const float* weights = nullptr;  ///< of the terms
};

/// sum[i] = Σ weight · table[row] over its terms in their order, or that is added. *Shapes:* table
/// [rows, features], sum [sums, features]. *Cost:* 2 · features operations for each term.
void sum_weighted_rows(const WeightedRows& problem, const float* table, Accumulate accumulate,
                       float* sum);

}  // namespace lacuna
