#include "lacuna/sparsity/weights/layout_policy.h"

#include <algorithm>
#include <utility>

#include "lacuna/framework/layouts/cost/cost_model.h"
#include "lacuna/sparsity/masks/mask_selector.h"

namespace lacuna {

LayoutPolicy::LayoutPolicy(LayoutOption option, PatternShape pattern, PatternLifetime lifetime)
    : option_(std::move(option)), pattern_(std::move(pattern)), lifetime_(lifetime) {}

const Layout& LayoutPolicy::compressed() const {
  return pattern_.is_structured() ? layout_for(pattern_) : csr_layout();
}

const Layout& LayoutPolicy::choose(const Parameter& parameter, const MaskSet& mask) const {
  if (!can_compress(parameter, mask)) return masked_layout();
  return option_.is_auto() ? fastest(parameter, mask.count()) : option_.choose();
}

const Layout& LayoutPolicy::foresee(const Parameter& parameter, int64_t nnz) const {
  const double most = pattern_.full_density() * static_cast<double>(parameter.numel());
  if (static_cast<double>(nnz) > most) return masked_layout();
  return option_.is_auto() ? fastest(parameter, nnz) : option_.choose();
}

bool LayoutPolicy::can_compress(const Parameter& parameter, const MaskSet& mask) const {
  // A mask that kernels have just selected has the pattern: checking would list its positions.
  if (!pattern_.is_structured() || mask.is_known_to_have(pattern_)) return true;
  const MaskSelector selector({}, pattern_, parameter.shape());
  switch (selector.fit(mask)) {
    case MaskSelector::Fit::Whole:
      return true;
    case MaskSelector::Fit::Partial:
      // Gradual pruning is on its way; csr holds any positions.
      return !option_.is_auto() && &option_.choose() == &csr_layout();
    case MaskSelector::Fit::None:
      break;
  }
  selector.refuse(parameter.name(), mask);
}

const Layout& LayoutPolicy::fastest(const Parameter& parameter, int64_t nnz) const {
  if (!parameter.is_linear_weight) return masked_layout();
  const Layout& compressed = this->compressed();
  const DensityLimitKey key{parameter.name(), std::string(compressed.name()), lifetime_};
  auto found = limits_->compress_below.find(key);
  if (found == limits_->compress_below.end()) {
    const double limit = density_limit(parameter.shape(), limits_->batch, compressed, lifetime_);
    found = limits_->compress_below.emplace(key, limit).first;
  }
  const auto numel = static_cast<double>(std::max<int64_t>(parameter.numel(), 1));
  return static_cast<double>(nnz) <= found->second * numel ? compressed : masked_layout();
}

}  // namespace lacuna
