// WeightAges: how many updates each weight of one parameter has had since it was grown.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// A counter of 16 bits for each stored element of a parameter. It follows the pattern as an
/// optimizer's state does: a position that stays keeps its count, a new one starts at 0. Counts
/// move to a new pattern when the ages are next requested.
class WeightAges {
 public:
  static constexpr int64_t kMost = 65535;

  bool empty() const { return pattern_ == nullptr; }
  void clear() { *this = {}; }

  /// The ages, aligned to `pattern`. *Requires* 0 ≤ `first` ≤ kMost, the age of all elements if no
  /// ages have been kept yet. *Cost:* none if the pattern is that of the last call; else O(stored),
  /// and 4 bytes for each element while they move.
  std::span<uint16_t> aligned_to(const PatternPtr& pattern, int64_t first);

  /// The ages in the form in which a slot is saved (slot_to_saved). `whole`: for every position.
  Tensor to_saved(const Parameter& parameter, bool whole) const;
  /// Whether all values are whole numbers from 0 to kMost.
  static bool are_ages(const Tensor& saved);
  /// Takes saved ages back. *Requires* `are_ages`, and one of `shapes_of_saved_slot`.
  void from_saved(const Parameter& parameter, const Tensor& saved, bool whole);

 private:
  Tensor moved_to(const Pattern& pattern) const;
  void take(const Tensor& ages, PatternPtr pattern);

  std::vector<uint16_t> ages_;
  PatternPtr pattern_;  // of the ages; null: no ages are kept
};

}  // namespace lacuna
