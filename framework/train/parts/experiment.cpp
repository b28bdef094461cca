#include "lacuna/framework/train/parts/experiment.hpp"

#include <string>
#include <utility>

#include "lacuna/framework/config/earlier_keys.hpp"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/parts/experiment_on_data.hpp"
#include "lacuna/framework/train/parts/experiment_part.hpp"

namespace lacuna {

namespace {

std::unique_ptr<Experiment> build(const Config& config, Start start,
                                  std::shared_ptr<Communicator> job, const DataSplits* data,
                                  const DataCheck& check_data = {}) {
  register_builtins();
  rename_earlier_keys(config);
  require_known_sections(config);
  auto e = std::make_unique<Experiment>();
  e->config = config;
  e->is_trial = start == Start::Trial;
  if (!config.has("train")) e->config.set("train", Config::map());
  config.optional<std::string>("run_dir");
  e->train = TrainOptions::from_config(config.get("train"));
  config.get("train").require_all_read();
  ExperimentBuild build{.e = *e,
                        .start = start,
                        .job = std::move(job),
                        .read_before = data,
                        .check_data = check_data};
  for (const ExperimentPart& part : experiment_parts()) part.read(build);
  for (const ExperimentPart& part : experiment_parts()) part.build(build);
  config.require_all_read();
  for (const ExperimentPart& part : experiment_parts()) part.check(build);
  for (const ExperimentPart& part : experiment_parts()) part.finish(build);
  e->origins = std::make_shared<const RunOrigins>(std::move(build.origins));
  return e;
}

}  // namespace

std::unique_ptr<Experiment> build_experiment(const Config& config, Start start,
                                             std::shared_ptr<Communicator> job,
                                             const DataCheck& check_data) {
  return build(config, start, std::move(job), nullptr, check_data);
}

std::unique_ptr<Experiment> build_experiment_on(const DataSplits& data, const Config& config,
                                                Start start, std::shared_ptr<Communicator> job) {
  return build(config, start, std::move(job), &data);
}

}  // namespace lacuna
