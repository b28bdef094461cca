// Saliency pruning: gradual pruning by |w·g|.
#pragma once

#include "lacuna/sparsity/gmp.h"

namespace lacuna {

/// GMP that keeps the largest |w·g| instead of |w|: the first-order estimate of how much the loss
/// changes when the weight becomes zero. g is the gradient of the update step.
/// *Source:* Molchanov et al., "Pruning convolutional neural networks for resource efficient
/// inference", 2017 (arXiv:1611.06440), equation 8, for single weights.
class Saliency final : public Gmp {
 public:
  /// *Errors:* ConfigError, as Gmp's; an update throws StateError where a parameter has no
  /// gradient.
  explicit Saliency(DynamicOptions options);

  std::string_view type() const override { return "saliency"; }
};

}  // namespace lacuna
