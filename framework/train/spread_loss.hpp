// The loss that label smoothing gives to labels whose classes have weight 0.
#pragma once

#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/config/named_tensors.h"

namespace lacuna {

/// A sum over labels, as a mean and what it is multiplied by.
struct SpreadLoss {
  Variable mean;
  double weight = 0.0;
};

/// Σ of the smoothed cross entropy over labels that all have weight 0 or are ignored:
/// `cross_entropy` has no divisor for them. *Requires* class weights of which one is above 0.
/// *Shapes, errors:* as `cross_entropy`.
SpreadLoss spread_loss(const Variable& output, const IndexTensor& labels,
                       const CrossEntropyOptions& options);

}  // namespace lacuna
