#include "lacuna/framework/program/actions/train_run.h"

#include <atomic>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/program/actions/prepared_run.hpp"

namespace lacuna {
namespace {

// The right to train in this process; when it ends, so does the run's log.
class OneTraining {
 public:
  OneTraining() {
    if (is_running_.test_and_set()) {
      throw StateError(
          "another training is running in this process; wait for its end, or train in a separate "
          "process");
    }
  }
  ~OneTraining() {
    stop_logging_to_file();
    is_running_.clear();
  }
  OneTraining(const OneTraining&) = delete;
  OneTraining& operator=(const OneTraining&) = delete;

 private:
  inline static std::atomic_flag is_running_ = ATOMIC_FLAG_INIT;
};

// Hands the trainer's steps to a request, with the newest events.
void watch(Trainer& trainer, const TrainRequest& request, TrainedStep& step) {
  trainer.watch_events([&step](const Config& event) {
    const std::string split = event.peek("split").text();
    if (split == "update") return;          // one for each parameter: they are in the run's files
    Config metrics = step.metrics.clone();  // whoever has those of before keeps them
    metrics.set(split, event.clone());
    step.metrics = metrics;
    step.has_new_metrics = true;
  });
  trainer.watch_steps([&](double loss) {
    step.step = trainer.step();
    step.loss = loss;
    if (!request.on_step(std::as_const(step))) trainer.stop();
    step.has_new_metrics = false;
  });
}

}  // namespace

TrainedRun train_run(const TrainRequest& request) {
  if (!request.resume && request.config.is_empty()) {
    throw ConfigError("a new run needs a configuration");
  }
  if (request.change && !request.resume) {
    throw ConfigError("`change` needs a run that is resumed; a new run has nothing to change");
  }
  const OneTraining only;
  PreparedRun run = prepare_run({.config = request.config,
                                 .run_dir = request.run_dir,
                                 .resume = request.resume,
                                 .change = request.change});
  if (request.on_begin) request.on_begin();
  TrainedStep step{.metrics = Config::map()};
  if (request.on_step) watch(*run.trainer, request, step);
  const RunEnd end = run.trainer->run();
  const bool has_ended = end == RunEnd::Finished || end == RunEnd::StoppedEarly;
  return {.run_dir = run.folder.path(),
          .end = end,
          .step = run.trainer->step(),
          .summary = has_ended ? run.trainer->summary().clone() : Config()};
}

}  // namespace lacuna
