// RigL: the rigged lottery.
#pragma once

#include "lacuna/sparsity/set.h"

namespace lacuna {

/// SET, but grows where the |dense gradient| is largest. For a compressed parameter, the whole
/// gradient is never in memory: its rows stream through a bounded selection. *Cost:* an update
/// costs at most 1.4 times the dense weight gradient, and O(nonzeros). *Source:* Evci et al.,
/// "Rigging the lottery: making all tickets winners", 2020 (arXiv:1911.11134).
class RigL : public Set {
 public:
  using Set::Set;
  std::string_view type() const override { return "rigl"; }

 protected:
  bool wants_dense_gradient(int64_t step) const override;
  MaskSet grow(const SparseWeight& weight, const MaskSet& kept, int64_t count) override;
};

}  // namespace lacuna
