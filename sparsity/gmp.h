// GMP: gradual magnitude pruning.
#pragma once

#include <string>
#include <vector>

#include "lacuna/sparsity/dynamic.h"

namespace lacuna {

/// On update steps keeps the largest |w| to the target of that step; what is pruned stays pruned.
/// *Source:* Zhu & Gupta, "To prune, or not to prune", 2017 (arXiv:1710.01878).
class Gmp : public DynamicPatternAlgorithm {
 public:
  /// *Errors:* ConfigError when the sparsity is a constant (that is `static`), or a drop fraction
  /// is given.
  explicit Gmp(DynamicOptions options);

  std::string_view type() const override { return "gmp"; }

  /// *Errors:* ConfigError besides when the sparsity falls after it has pruned.
  void foresee(std::vector<PlannedParameter>& planned, int64_t steps) const override;

 protected:
  /// For a subclass of another name, which messages then give.
  Gmp(DynamicOptions options, const std::string& type);
  Positions update_positions(const Parameter& parameter, const Positions& present,
                             float sparsity) final;
  int64_t nnz_after_update(int64_t nnz, int64_t target, int64_t groups, int64_t step,
                           int64_t updates) const override;
  /// What pruning keeps the largest of, one per present position, ascending by flat index: |w|
  /// here.
  virtual std::vector<float> scores(const Parameter& parameter) const;
};

}  // namespace lacuna
