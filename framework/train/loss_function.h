// LossFunction: what is minimized, for classification or regression.
#pragma once

#include <cstdint>
#include <string>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/core/config.h"
#include "lacuna/framework/data/dataset.h"

namespace lacuna {

/// Mean loss over a batch: cross entropy of class logits, or the mean squared error.
class LossFunction {
 public:
  /// "cross_entropy", "mse", or a map with `type` (and `label_smoothing` in [0, 1) for
  /// cross_entropy). null → cross_entropy for data with classes, else mse.
  /// *Errors:* ConfigError on another name, or a loss that does not suit the data.
  static LossFunction from_config(const Config& parent, const Dataset& data);

  /// *Shapes:* output [batch, classes or outputs] → scalar.
  Variable operator()(const Variable& output, const Batch& batch) const;

  bool is_classification() const { return kind_ == Kind::CrossEntropy; }

 private:
  enum class Kind { CrossEntropy, MeanSquaredError };
  Kind kind_ = Kind::CrossEntropy;
  double label_smoothing_ = 0.0;
};

/// Examples whose largest logit (the first among equals) is their label's. A row with NaN never
/// counts. *Requires* labels in [0, classes).
int64_t count_correct(const Tensor& logits, const IndexTensor& labels);
/// Index of the largest element of each row. *Shapes:* [n, classes] → n indices.
std::vector<int64_t> argmax_rows(const Tensor& logits);

}  // namespace lacuna
