// SparsifiedWeight: the weight that is used is what a sparsifier keeps of a dense master weight.
#pragma once

#include <cstdint>

#include "lacuna/sparsity/sparsifier.h"
#include "lacuna/sparsity/straight_through.h"

namespace lacuna {

struct SparsifiedWeightOptions {
  SparsifierPtr sparsifier;  ///< required
  ParameterFilter param_filter = {};
  LayoutOption layout = {};
  /// Steps for which a mask is kept.
  int64_t every = 1;
};

/// As SemiSparse, for any sparsifier: straight-through training of a dense master weight. It lets
/// parameters go as they are used, sparse. *Cost:* dense weight gradient and states; the
/// sparsifier.
class SparsifiedWeight final : public StraightThrough {
 public:
  /// *Errors:* ConfigError without a sparsifier, or when `every` is below 1.
  explicit SparsifiedWeight(const SparsifiedWeightOptions& options);

  std::string_view type() const override { return "sparsify"; }

  void forecast(Forecast& forecast) const override;

 protected:
  MaskSet initial_mask(const SparseWeight& weight, MaskSource source) override;
  MaskSet update_mask(const SparseWeight& weight, const MaskSet& mask, float sparsity) override;

 private:
  MaskSet select(const SparseWeight& weight) const;

  SparsifierPtr sparsifier_;
};

}  // namespace lacuna
