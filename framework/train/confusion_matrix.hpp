// ConfusionMatrix: which classes are taken for which.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Counts of examples by true class (rows) and predicted class (columns).
class ConfusionMatrix {
 public:
  /// With more classes than these a matrix is too large to be looked at.
  static constexpr int64_t kMostClasses = 1000;

  /// *Requires* 1 ≤ classes ≤ kMostClasses.
  explicit ConfusionMatrix(int64_t classes);

  /// *Requires* as many labels as predictions, all of them in [0, classes).
  void add(const IndexTensor& labels, const std::vector<int64_t>& predicted);

  /// What `numbers` of another one gave, of as many classes.
  void add(std::span<const double> counts);

  int64_t classes() const { return classes_; }
  int64_t count(int64_t label, int64_t predicted) const;
  /// All counts, row by row: exact up to 2^53.
  std::vector<double> numbers() const { return {counts_.begin(), counts_.end()}; }
  /// A list of rows.
  Config to_config() const;

 private:
  int64_t classes_;
  std::vector<int64_t> counts_;  // row-major
};

}  // namespace lacuna
