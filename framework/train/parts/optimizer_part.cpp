// The optimizer of an experiment.
#include "lacuna/framework/train/parts/experiment_part.hpp"
#include "lacuna/framework/train/parts/run_positions.hpp"
#include "lacuna/optimizers/optimizer_registry.h"

namespace lacuna {
namespace {

void read_optimizer(ExperimentBuild& b) { b.e.config.at("optimizer"); }

void build_optimizer(ExperimentBuild& b) {
  complete_optimizer(b.e.config.at("optimizer"),
                     {.steps = b.e.total_steps(), .steps_per_epoch = b.e.steps_per_epoch()});
  b.e.optimizer = make_optimizer(b.e.config.at("optimizer"), b.e.model->parameters());
}

void check_optimizer(ExperimentBuild& b) {
  if (b.e.is_trial) return;
  require_learning_rates(b.e.config.at("optimizer"), b.e.total_steps());
}

void finish_optimizer(ExperimentBuild& b) {
  if (b.is_fresh()) warn_about_warmup(b.e.config.at("optimizer"), b.e.total_steps());
}

}  // namespace

ExperimentPart optimizer_part() {
  return {.read = read_optimizer,
          .build = build_optimizer,
          .check = check_optimizer,
          .finish = finish_optimizer};
}

}  // namespace lacuna
