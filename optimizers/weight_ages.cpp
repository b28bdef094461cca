#include "lacuna/optimizers/weight_ages.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lacuna/framework/param/saved_slot.hpp"

namespace lacuna {

std::span<uint16_t> WeightAges::aligned_to(const PatternPtr& pattern, int64_t first) {
  if (pattern_ == nullptr) {
    ages_.assign(static_cast<size_t>(pattern->stored_size()), static_cast<uint16_t>(first));
  } else if (pattern_ != pattern && !pattern->stores_as(*pattern_)) {
    take(moved_to(*pattern), pattern);
  }
  pattern_ = pattern;
  return ages_;
}

// As float32, which represents every age exactly, so that ages move as states do. Positions outside
// a mask are counted too; their ages have no meaning.
Tensor WeightAges::moved_to(const Pattern& pattern) const {
  Tensor array = Tensor::empty(pattern_->stored_shape());
  std::ranges::copy(ages_, array.mutable_storage().begin());
  const bool was_whole = pattern_->stores_every_position();
  if (was_whole) pattern_->layout().prune(*pattern_, array.mutable_storage());
  if (pattern.stores_as(*pattern_)) return array;
  if (!was_whole && !pattern.stores_every_position()) {
    return PatternMove(*pattern_, pattern, pattern_->positions(), pattern.positions())(array);
  }
  const Tensor dense = was_whole ? array : pattern_->layout().to_dense(*pattern_, array.storage());
  Tensor moved = Tensor::empty(pattern.stored_shape());
  pattern.layout().from_dense(pattern, dense.storage(), moved.mutable_storage());
  return moved;
}

void WeightAges::take(const Tensor& ages, PatternPtr pattern) {
  const std::span<const float> from = ages.storage();
  ages_.resize(from.size());
  std::ranges::transform(from, ages_.begin(), [](float age) { return static_cast<uint16_t>(age); });
  pattern_ = std::move(pattern);
}

Tensor WeightAges::to_saved(const Parameter& parameter, bool whole) const {
  const PatternPtr pattern = whole ? Pattern::dense(parameter.shape()) : parameter.pattern();
  return slot_to_saved(parameter, {.values = moved_to(*pattern), .requires_dense = whole});
}

bool WeightAges::are_ages(const Tensor& saved) {
  return std::ranges::all_of(saved.storage(), [](float age) {
    return age >= 0.0f && age <= static_cast<float>(kMost) && age == std::floor(age);
  });
}

void WeightAges::from_saved(const Parameter& parameter, const Tensor& saved, bool whole) {
  take(slot_from_saved(parameter, saved, whole),
       whole ? Pattern::dense(parameter.shape()) : parameter.pattern());
}

}  // namespace lacuna
