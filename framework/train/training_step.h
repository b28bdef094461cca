// One optimizer step's forward and backward passes, and the sums over its examples.
#pragma once

#include <cstdint>

#include "lacuna/framework/train/experiment.h"

namespace lacuna {

/// Sums over some examples: of a step, of an epoch, of a log window.
struct TrainingSums {
  double loss = 0.0;
  int64_t correct = 0;  ///< right answers, of which an example may have several
  int64_t examples = 0;
  int64_t answers = 0;  ///< those that the examples ask for (`LossFunction::answers_of`)

  TrainingSums& operator+=(const TrainingSums& other);
  /// Means, over the examples and over the answers; 0 without any.
  double mean_loss() const;
  double accuracy() const;
};

/// Forward and backward of the `accumulate` batches of one optimizer step (fewer at the end of an
/// epoch). Each loss is weighed by its share of the examples, so that the gradients add up to that
/// of the mean over all of them. A loss that is NaN or infinite ends it there, and stands in the
/// sums.
TrainingSums run_batches(Experiment& experiment);

}  // namespace lacuna
