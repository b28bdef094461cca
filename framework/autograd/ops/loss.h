// Losses as operations: each gives a scalar, the mean over the batch.
#pragma once

#include "lacuna/framework/autograd/variable.h"

namespace lacuna {

struct CrossEntropyOptions {
  /// ε in [0, 1]: the target is ε/classes for every class and 1 − ε more for the label.
  double label_smoothing = 0.0;
};

/// Mean over the examples of −Σ_j q_j log softmax(logits)_j with the target q of the options; with
/// ε = 0 that is −log softmax(logits)_label. Stable for any finite logits, sums in double.
/// *Shapes:* logits [examples, classes], labels [examples] → scalar.
/// *Errors:* ShapeError with both shapes, and without examples; DataError that names a label out of
/// range and its index; ConfigError on a label_smoothing outside [0, 1].
/// *Source:* label smoothing as in Szegedy et al., arXiv:1512.00567, section 7.
Variable cross_entropy(const Variable& logits, const IndexTensor& labels,
                       const CrossEntropyOptions& options = {});

/// Mean over all elements of (prediction − target)². *Shapes:* both the same → scalar.
/// *Errors:* ShapeError with both shapes, and when there is no element.
Variable mse_loss(const Variable& prediction, const Variable& target);

}  // namespace lacuna
