// Losses as operations: each returns a scalar, the mean over the batch.
#pragma once

#include <span>
#include <vector>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/config/named_tensors.h"

namespace lacuna {

struct CrossEntropyOptions {
  /// ε in [0, 1]: the target is ε/classes for every class and 1 − ε more for the label.
  double label_smoothing = 0.0;
  /// w, a factor for each class, finite and at least 0; empty: 1 each.
  std::vector<float> class_weights = {};
};

/// Σ over the labels of −Σ_j w_j q_j log softmax(logits)_j, divided by Σ of the labels' w, with the
/// target q and the class weights w of the options; without these, the mean over the labels of −log
/// softmax(logits)_label. A label of kIgnoredLabel counts in neither sum, and its logits get no
/// gradient. As in PyTorch, except that the loss is 0, without a gradient, if all labels' weights
/// are 0 or all labels are ignored. Stable for any finite logits, sums in double. *Shapes:* logits
/// [examples, …, classes], labels [examples, …] → scalar. *Errors:* ShapeError with both shapes,
/// and without examples; DataError that names a label out of range and its index; ConfigError if
/// label_smoothing is outside [0, 1], or if class weights are not one per class or have invalid
/// values. *Source:* label smoothing as in Szegedy et al., arXiv:1512.00567, section 7.
Variable cross_entropy(const Variable& logits, const IndexTensor& labels,
                       const CrossEntropyOptions& options = {});

/// Cross entropy of examples that are mixtures of two: the mean over them of share · L(label) + (1
/// − share) · L(other label), with L as above, label smoothing included. *Shapes:* logits
/// [examples, classes], both labels [examples], as many shares → scalar. *Requires* shares and
/// label_smoothing in [0, 1], and no kIgnoredLabel. *Errors:* ShapeError with the shapes, and
/// without examples; DataError as above; ConfigError on class weights, which have no meaning for
/// mixtures. *Source:* Zhang et al., arXiv:1710.09412.
Variable mixed_cross_entropy(const Variable& logits, const IndexTensor& labels,
                             const IndexTensor& other_labels, std::span<const float> shares,
                             const CrossEntropyOptions& options = {});

/// T² times the mean over the rows of Σ_j p_j log(p_j / q_j), with p = softmax(teacher / T) and q =
/// softmax(logits / T) for the temperature T: the divergence of a model from its teacher. A row
/// whose value in `mask` is 0 does not count, and its logits get no gradient; if no row counts, the
/// loss is 0. An undefined mask counts all rows. No gradient goes to the teacher. Stable for any
/// finite logits, sums in double. *Shapes:* both [examples, …, classes], mask [examples, …] →
/// scalar. *Errors:* ShapeError with both shapes, and without examples; ConfigError unless T is
/// finite and above 0. *Source:* Hinton et al., arXiv:1503.02531, section 2.
Variable distillation_loss(const Variable& logits, const Tensor& teacher, double temperature,
                           const IndexTensor& mask = {});

/// Mean over all elements of −t log σ(x) − (1 − t) log(1 − σ(x)), with logits x and targets t: each
/// output is an independent decision. Stable for any finite logits, sums in double. No gradient
/// goes to the targets. *Shapes:* both the same → scalar. *Errors:* ShapeError with both shapes,
/// and when there is no element; DataError that names a target outside [0, 1] and its index.
///
/// With `pos_weights` w, one for each output, an element's loss is −w t log σ(x) − (1 − t) log(1 −
/// σ(x)); the sum is still divided by the number of elements, as in PyTorch. *Errors:* ConfigError
/// also on weights that are not one for each output, finite and at least 0.
Variable binary_cross_entropy(const Variable& logits, const Tensor& targets,
                              std::span<const float> pos_weights = {});

/// Mean over all elements of (prediction − target)². *Shapes:* both the same → scalar.
/// *Errors:* ShapeError with both shapes, and if there is no element.
Variable mse_loss(const Variable& prediction, const Variable& target);

}  // namespace lacuna
