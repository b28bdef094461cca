// SET: drops the smallest weights and grows new ones at random.
#pragma once

#include "lacuna/sparsity/dynamic.h"

namespace lacuna {

/// On update steps drops the smallest |w| by the drop fraction, then grows at random to the target.
/// A subclass with another growth rule overrides `grow`. *Source:* Mocanu et al., "Scalable
/// training of artificial neural networks with adaptive sparse connectivity", 2018
/// (arXiv:1707.04780). *Cost:* O(nonzeros) for an update.
class Set : public DynamicSparsityAlgorithm {
 public:
  using DynamicSparsityAlgorithm::DynamicSparsityAlgorithm;
  std::string_view type() const override { return "set"; }

 protected:
  MaskSet update_mask(const SparseWeight& weight, const MaskSet& mask, float sparsity) override;
  int64_t nnz_after_update(const MaskSelector& selector, int64_t nnz, int64_t target,
                           float drop_fraction) const override;
  /// `kept` with positions added until there are `count`.
  virtual MaskSet grow(const SparseWeight& weight, const MaskSet& kept, int64_t count);
};

}  // namespace lacuna
