#include "lacuna/sparsity/grow_by_choice.h"

#include <algorithm>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {

GrowByChoice::GrowByChoice(Options given)
    : Set(std::move(given.common)), gradient_share_(given.gradient_share) {
  if (!(gradient_share_ >= 0.0 && gradient_share_ <= 1.0)) {
    throw ConfigError("dynamic: the share that grows by gradient must be in [0, 1], found " +
                      Config(gradient_share_).text());
  }
  const bool is_mixed = gradient_share_ > 0.0 && gradient_share_ < 1.0;
  if (is_mixed && options().pattern.is_nm()) {
    throw ConfigError("dynamic: a mixed growth cannot be combined with a pattern (" +
                      options().pattern.description() + "), whose cells are filled by one rule");
  }
}

bool GrowByChoice::wants_dense_gradient(int64_t step) const {
  return gradient_share_ > 0.0 && update_schedule().is_update(step);
}

MaskSet GrowByChoice::grow(const SparseWeight& weight, const MaskSet& kept, int64_t count) {
  const MaskSelector& select = weight.selector();
  MaskSet grown = kept;
  if (gradient_share_ > 0.0) {
    const int64_t unit = select.pattern().unit_size() * select.groups().count();
    const int64_t missing = std::max<int64_t>(count - kept.count(), 0) / unit;
    const auto chosen = static_cast<int64_t>(gradient_share_ * static_cast<double>(missing));
    const int64_t by_gradient = gradient_share_ == 1.0 ? count : kept.count() + chosen * unit;
    grown = select.grow_maximum(gradient_rows(weight), by_gradient, kept);
  }
  return select.grow_random(rng(weight, "/grow"), count, grown);
}

}  // namespace lacuna
