// Saliency pruning: gradual pruning by |w·g|.
#pragma once

#include <utility>

#include "lacuna/sparsity/gmp.h"

namespace lacuna {

/// GMP that keeps the largest |w·g| instead of |w|: the first-order estimate of how much the loss
/// changes when the weight becomes zero. g is the gradient of the update step.
/// *Source:* Molchanov et al., "Pruning convolutional neural networks for resource efficient
/// inference", 2017 (arXiv:1611.06440), equation 8, for single weights.
class Saliency final : public Gmp {
 public:
  /// *Errors:* ConfigError, as Gmp's.
  explicit Saliency(DynamicOptions options) : Gmp(std::move(options), "saliency") {}

  std::string_view type() const override { return "saliency"; }

 protected:
  /// *Errors:* StateError when the parameter has no gradient.
  std::vector<float> scores(const Parameter& parameter) const override;
};

}  // namespace lacuna
