// SparsifiedWeight: the weight that is used is what a sparsifier keeps of a dense master weight.
#pragma once

#include <cstdint>

#include "lacuna/sparsity/selected_part.h"
#include "lacuna/sparsity/sparsifier.h"

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
class SparsifiedWeight final : public SelectedPart {
 public:
  /// *Errors:* ConfigError without a sparsifier, or when `every` is below 1.
  explicit SparsifiedWeight(const SparsifiedWeightOptions& options);

  std::string_view type() const override { return "sparsify"; }

  /// Elements that a sparsifier judges one by one may come back.
  bool foresees_exactly() const override {
    return sparsifier_->scope() != Sparsifier::Scope::Streaming;
  }

 protected:
  BitMask select(const Parameter& parameter) const override;
  void foresee(std::vector<PlannedParameter>& planned, int64_t steps) const override;

 private:
  SparsifierPtr sparsifier_;
};

}  // namespace lacuna
