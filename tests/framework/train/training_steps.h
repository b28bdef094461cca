// Steps of an experiment, without the training loop around them.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/train/loop/training_step.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// Trains so many steps; the mean loss of each.
inline std::vector<double> take_steps(Experiment& e, int64_t steps) {
  e.model->train();
  std::vector<double> losses;
  for (int64_t step = 0; step < steps; ++step) {
    losses.push_back(run_batches(e).mean_loss());
    step_optimizers(e);
    e.optimizer->zero_grad();
  }
  return losses;
}

}  // namespace lacuna
