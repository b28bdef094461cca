// Selects rows of a table by their numbers.
#pragma once

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

struct EmbeddingOptions {
  int64_t padding_id = -1;  ///< the row that gets no gradient; −1: none
};

/// y[..., :] = weight[ids[...], :]. The gradient of a row is the sum over its uses in their order,
/// the same bits on any number of threads. *Shapes:* ids [...], weight [vocabulary, features] →
/// [..., features], row-major. *Errors:* ShapeError on a weight that is not a matrix; DataError
/// that names an id out of range, its place and the size of the vocabulary. *Cost:* the gradient is
/// dense, [vocabulary, features].
Variable embedding(const IndexTensor& ids, const Variable& weight,
                   const EmbeddingOptions& options = {});

/// The same for a parameter, whose gradient is computed in its own array: the collected values are
/// changed only in the used rows. With `Parameter::sparse_gradient` nothing is done for other rows.
/// If not every position of the weight is stored, this takes a pass over the stored ones.
Variable embedding(const IndexTensor& ids, const ParameterPtr& weight,
                   const EmbeddingOptions& options = {});

}  // namespace lacuna
