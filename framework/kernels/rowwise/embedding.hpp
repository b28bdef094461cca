// Rows of a table by their numbers, and the sum of gradients back into it.
#pragma once

#include <cstdint>

#include "lacuna/framework/core/accumulate.h"

namespace lacuna {

/// Numbers of rows: `count` ids, each in [0, rows), of a table [rows, features].
struct EmbeddingProblem {
  const int64_t* ids = nullptr;
  int64_t count = 0;
  int64_t rows = 0;
  int64_t features = 0;
  int64_t skipped_id = -1;  ///< the row that gets no gradient; may be `rows` there; −1: none
};

/// y[i] = table[ids[i]]. *Shapes:* table [rows, features], y [count, features]. *Cost:* one pass.
void gather_rows(const EmbeddingProblem& problem, const float* table, float* y);

/// gradient[id] = Σ dy[i] over the i with ids[i] = id, in ascending order of i, so the bits do not
/// depend on the number of threads; or adds it to the gradient. *Shapes:* as above. *Cost:* one
/// pass over dy, a sort of the ids by counting, and, if it overwrites, one over the gradient.
void add_rows(const EmbeddingProblem& problem, const float* dy, Accumulate accumulate,
              float* gradient);

}  // namespace lacuna
