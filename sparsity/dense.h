// Dense: no sparsity, as a phase of a plan.
#pragma once

#include <utility>

#include "lacuna/sparsity/algorithm.h"

namespace lacuna {

/// Every position is in the mask. In a plan of phases it fills the masks of the previous phase;
/// restored weights start at zero.
class Dense final : public SparsityAlgorithm {
 public:
  explicit Dense(ParameterFilter filter = {}, LayoutOption layout = {})
      : SparsityAlgorithm(
            {.sparsity = 0.0, .param_filter = std::move(filter), .layout = std::move(layout)}) {}

  std::string_view type() const override { return "dense"; }
  FirstMasks first_masks() const override { return FirstMasks::Own; }
  void update(Optimizer&) override { count_step(); }
  bool makes_sparse(const ParameterPtr&) const override { return false; }
  void forecast(Forecast& forecast) const override {
    for (PlannedParameter& planned : forecast.parameters) {
      planned.initial_nnz = planned.final_nnz = planned.shape.numel();
    }
  }

 protected:
  MaskSet initial_mask(const SparseWeight& weight, MaskSource) override {
    return MaskSet::all(weight.shape());
  }
};

}  // namespace lacuna
