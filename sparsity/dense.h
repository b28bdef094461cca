// Dense: no sparsity, as a phase of a plan.
#pragma once

#include "lacuna/sparsity/algorithm.h"

namespace lacuna {

/// Every position is in the mask. In a plan of phases it fills the masks that the phase before
/// left; what comes back starts at zero.
class Dense final : public SparsityAlgorithm {
 public:
  explicit Dense(ParameterFilter filter = {})
      : SparsityAlgorithm({.sparsity = 0.0, .param_filter = std::move(filter)}) {}

  std::string_view type() const override { return "dense"; }
  void update(Optimizer&) override { count_step(); }

 protected:
  Positions initial_positions(const Parameter& parameter) override {
    return Positions::all(parameter.shape());
  }
  Positions first_positions(const Parameter& parameter, FirstMasks first) override {
    return first == FirstMasks::Keep ? SparsityAlgorithm::first_positions(parameter, first)
                                     : initial_positions(parameter);
  }
};

}  // namespace lacuna
