// The losses' sums over a batch, and their derivatives.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/config/named_tensors.h"

namespace lacuna {

/// Σ (a − b)² over all elements, in double over sums of 1024 floats. *Requires* equal lengths.
double sum_squared_difference(std::span<const float> a, std::span<const float> b);

/// y = factor · (a − b). *Requires* equal lengths.
void scaled_difference(float factor, std::span<const float> a, std::span<const float> b,
                       std::span<float> y);

/// Logits [examples, classes], row-major, with a label for each example in [0, classes), or
/// kIgnoredLabel: then it adds nothing, and its gradient is 0.
struct CrossEntropyProblem {
  int64_t examples = 0;
  int64_t classes = 0;
  const float* logits = nullptr;
  const int64_t* labels = nullptr;
  double label_smoothing = 0.0;  ///< ε in [0, 1]
  /// Factors of the classes' terms, at least 0; null: 1 each.
  const float* class_weights = nullptr;
};

/// Σ over the examples of −Σ_j w_j q_j log softmax(x)_j, where the target q is ε/classes everywhere
/// and 1 − ε more at the label, and w are the class weights. In double where sums are long.
/// *Requires* at least one class.
double cross_entropy(const CrossEntropyProblem& problem);

/// dx = factor · (Σ_j w_j q_j · softmax(x) − w q). *Shapes:* dx [examples, classes]; may be the
/// logits. The exponentials are computed again: that costs less than a saved log-sum-exp loses in
/// precision.
void cross_entropy_gradient(const CrossEntropyProblem& problem, float factor, float* dx);

/// Σ over all elements of max(x, 0) − x t + log(1 + e^−|x|), which is −log σ(x) where the target t
/// is 1 and −log(1 − σ(x)) where it is 0, stable for any finite x. In double over sums of 1024
/// floats. *Requires* equal lengths.
double binary_cross_entropy(std::span<const float> logits, std::span<const float> targets);

/// dx = factor · (σ(x) − t). *Requires* equal lengths; dx may be the logits.
void binary_cross_entropy_gradient(float factor, std::span<const float> logits,
                                   std::span<const float> targets, std::span<float> dx);

/// The same with a weight w of each element's target 1: Σ of −w t log σ(x) − (1 − t) log(1 − σ(x)).
/// *Requires* equal lengths.
double binary_cross_entropy(std::span<const float> logits, std::span<const float> targets,
                            std::span<const float> weights);
/// dx = factor · ((1 + (w − 1) t) σ(x) − w t). *Requires* equal lengths; dx may be the logits.
void binary_cross_entropy_gradient(float factor, std::span<const float> logits,
                                   std::span<const float> targets, std::span<const float> weights,
                                   std::span<float> dx);

}  // namespace lacuna
