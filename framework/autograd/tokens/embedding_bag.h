// Weighted sums of rows of a table by their numbers: sparse examples times a weight.
#pragma once

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

/// y[i] = Σ_j values[i, j] · weight[ids[i, j]], where an id of −1 means none. The gradient of a row
/// is the sum over its uses in their order, the same bits on any number of threads; the values get
/// none. *Shapes:* ids and values [batch, most], weight [rows, features] → [batch, features].
/// *Errors:* ShapeError with the shapes; DataError that names an id out of range and its place.
/// *Cost:* 2 · features operations for each id; with `Parameter::sparse_gradient` nothing for rows
/// that the batch does not use.
Variable embedding_bag(const IndexTensor& ids, const Tensor& values, const ParameterPtr& weight);

}  // namespace lacuna
