// One optimizer step's forward and backward passes, and the sums over its examples.
#pragma once

#include <cstdint>

#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// Sums over some examples: of a step, of an epoch, of a log window.
struct TrainingSums {
  LossSums loss = {};
  int64_t correct = 0;  ///< right answers, of which an example may have several
  int64_t examples = 0;
  int64_t answers = 0;  ///< those that the examples ask for (`LossFunction::answers_of`)

  TrainingSums& operator+=(const TrainingSums& other);
  /// The mean loss by the loss's own divisors, and right answers over all; 0 without any.
  double mean_loss() const { return loss.mean(); }
  double accuracy() const;
};

/// Forward and backward of the `accumulate` batches of one optimizer step (fewer at the end of an
/// epoch). Each loss is divided by the weight of all these batches (`LossFunction::weight_of`), so
/// that the gradients add up to those of one batch of all their examples; shards and processes
/// alike. *Cost:* where weights depend on labels, all batches of the step are drawn before the
/// first forward pass, and their inputs are held at once. A loss that is NaN or infinite ends the
/// step there, and makes the mean loss NaN or infinite.
TrainingSums run_batches(Experiment& experiment);

/// The same, which tells the log of each node of the backward pass, and of the forward pass what it
/// converts.
TrainingSums run_traced_batches(Experiment& experiment);

/// What changes by the gradients of run_batches: learned scales of qat, then the parameters.
void step_optimizers(Experiment& experiment);

/// What a profiler calls the loss.
inline constexpr const char* kLossLayer = "(loss)";

}  // namespace lacuna
