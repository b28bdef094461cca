// What a step of dense training of the same network takes, next to a sparse run.
#pragma once

#include <optional>

#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// A step of dense training.
struct DenseStep {
  double seconds = 0.0;
  bool is_measured = false;  ///< else predicted by the costs of layouts
};

/// The step of an experiment's network without its sparsity: the same data, batches, loss and
/// optimizer, trained in this process for about `budget` seconds, and kept where the costs of
/// layouts are (cost_model.hpp). It is predicted where a dense network does not fit the memory that
/// is available, three steps of it would take longer than half a minute, or the measured time is
/// more than three times the predicted one, because another program had the processor meanwhile.
/// The prediction is `sparse_step` and, for each compressed weight, how much more its products and
/// its update cost in layout masked. Nothing of the experiment changes. Nothing for a run that is
/// dense, or of several processes.
std::optional<DenseStep> dense_step(const Experiment& experiment, double sparse_step,
                                    double budget);

}  // namespace lacuna
