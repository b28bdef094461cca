#include "lacuna/sparsity/weights/layout_policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lacuna/framework/layouts/cost/cost_model.hpp"
#include "lacuna/sparsity/masks/mask_selector.h"

namespace lacuna {

int64_t CompressionLimits::rows_of(const Parameter& parameter) const {
  const auto found = rows.find(parameter.name());
  return found == rows.end() ? batch : std::max<int64_t>(found->second, 1);
}

ConvolutionShape CompressionLimits::convolution_of(const Parameter& parameter) const {
  ConvolutionShape shape = *parameter.convolution;
  shape.batch = batch;
  const auto found = rows.find(parameter.name());
  if (found == rows.end()) return shape;
  const Extent places = shape.output();
  const double images = static_cast<double>(found->second) /
                        static_cast<double>(std::max<int64_t>(places.height * places.width, 1));
  shape.batch = std::max<int64_t>(std::llround(images), 1);
  return shape;
}

LayoutPolicy::LayoutPolicy(LayoutOption option, PatternShape pattern, PatternLifetime lifetime)
    : option_(std::move(option)), pattern_(std::move(pattern)), lifetime_(lifetime) {}

const Layout& LayoutPolicy::compressed(const Parameter& parameter) const {
  const bool has_own = pattern_.is_structured() && parameter.use != WeightUse::Convolution;
  return has_own ? layout_for(pattern_) : csr_layout();
}

double assumed_limit(const Parameter& parameter, const Layout& compressed,
                     PatternLifetime lifetime) {
  if (&compressed != &csr_layout()) return 0.75;
  if (lifetime == PatternLifetime::OneStep) return 0.0;
  return parameter.use == WeightUse::Convolution ? 0.1 : 0.2;
}

bool LayoutPolicy::holds_any_positions(const Parameter& parameter) const {
  return &(option_.is_auto() ? compressed(parameter) : option_.choose()) == &csr_layout();
}

const Layout& LayoutPolicy::choose(const Parameter& parameter, const MaskSet& mask) const {
  if (!can_compress(parameter, mask)) return masked_layout();
  return option_.is_auto() ? fastest(parameter, mask.count()) : option_.choose();
}

const Layout& LayoutPolicy::foresee(const Parameter& parameter, int64_t nnz) const {
  const double most = pattern_.full_density() * static_cast<double>(parameter.numel());
  if (static_cast<double>(nnz) > most && !holds_any_positions(parameter)) return masked_layout();
  return option_.is_auto() ? fastest(parameter, nnz) : option_.choose();
}

bool LayoutPolicy::can_compress(const Parameter& parameter, const MaskSet& mask) const {
  if (!pattern_.is_structured()) return true;
  const MaskSelector selector({}, pattern_, parameter.shape());
  switch (selector.fit(mask)) {
    case MaskSelector::Fit::Whole:
      return true;
    case MaskSelector::Fit::Partial:
      return holds_any_positions(parameter);  // gradual pruning is on its way
    case MaskSelector::Fit::None:
      break;
  }
  selector.refuse(parameter.name(), mask);
}

// A mask for one step would have its streams made for one step.
double LayoutPolicy::limit_of_convolution(const Parameter& parameter) const {
  if (lifetime_ == PatternLifetime::OneStep) return 0.0;
  return density_limit(limits_->convolution_of(parameter));
}

const Layout& LayoutPolicy::fastest(const Parameter& parameter, int64_t nnz) const {
  const bool is_convolution = parameter.use == WeightUse::Convolution && parameter.convolution;
  if (!parameter.is_linear_weight() && !is_convolution) return masked_layout();
  const Layout& compressed = this->compressed(parameter);
  const DensityLimitKey key{parameter.name(), std::string(compressed.name()), lifetime_};
  auto found = limits_->compress_below.find(key);
  if (found == limits_->compress_below.end()) {
    const double limit =
        !limits_->are_measured ? assumed_limit(parameter, compressed, lifetime_)
        : is_convolution
            ? limit_of_convolution(parameter)
            : density_limit(parameter.shape(), limits_->rows_of(parameter), compressed, lifetime_);
    found = limits_->compress_below.emplace(key, limit).first;
  }
  const auto numel = static_cast<double>(std::max<int64_t>(parameter.numel(), 1));
  return static_cast<double>(nnz) <= found->second * numel ? compressed : masked_layout();
}

}  // namespace lacuna
