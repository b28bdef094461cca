// The average of an experiment's weights; with it everything is there that training holds for each
// parameter.
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/train/parts/experiment_part.hpp"

namespace lacuna {
namespace {

void finish_average(ExperimentBuild& b) {
  Experiment& e = b.e;
  if (b.is_fresh()) warn_about_average(e.train, e.total_steps());
  if (e.train.ema) {
    e.average = std::make_unique<WeightAverage>(*e.model, *e.train.ema, e.model->buffers());
  }
  // Before a gradient or a state is allocated; a checkpoint's masks are not there yet.
  if (b.start == Start::Fresh || e.is_trial) e.require_training_fits(total_memory());
}

}  // namespace

ExperimentPart average_part() { return {.finish = finish_average}; }

}  // namespace lacuna
