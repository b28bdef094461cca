// SNFS: sparse networks from scratch, by sparse momentum.
#pragma once

#include <map>
#include <string>

#include "lacuna/sparsity/set.h"

namespace lacuna {

/// SET whose growth follows the momentum of the dense gradient: M ← αM + (1 − α)g at every step,
/// kept for every position. What all layers grow to reach their targets together is shared out in
/// proportion to the mean |M| of their nonzeros, and each layer grows where its |M| is largest.
/// *Source:* Dettmers & Zettlemoyer, "Sparse networks from scratch: faster training without losing
/// performance", 2019 (arXiv:1907.04840), section 3. The algorithm keeps its own momentum, so any
/// optimizer can be used. *Cost:* a dense gradient in every step.
class Snfs final : public Set {
 public:
  struct Options {
    DynamicOptions common = {};
    double momentum = 0.9;     ///< α, in [0, 1); in a configuration at most 0.999999
    bool redistribute = true;  ///< whether layers exchange nonzeros
  };

  /// *Errors:* ConfigError on a momentum out of range, redistribution with groups or a pattern, or
  /// keep_alive.
  explicit Snfs(Options options);

  std::string_view type() const override { return "snfs"; }
  void update(Optimizer& optimizer) override;
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

 protected:
  bool wants_dense_gradient(int64_t) const override { return true; }
  MaskSet grow(const SparseWeight& weight, const MaskSet& kept, int64_t count) override;

 private:
  void update_momentum();
  void share_out();

  double momentum_;
  bool redistribute_;
  std::map<std::string, Tensor> moments_;  // by parameter name
  std::map<std::string, int64_t> counts_;  // nonzeros of each at this update
};

}  // namespace lacuna
