// `lacuna train`: a new run, or the next part of one.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/names.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/kernels/gemm.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "lacuna/framework/train/commands.h"
#include "lacuna/framework/train/config_changes.h"
#include "lacuna/framework/train/model_builder.h"
#include "lacuna/framework/train/trainer.h"

namespace lacuna {
namespace {

std::vector<std::string> all_overrides(const TrainCommand& command) {
  std::vector<std::string> all = command.overrides;
  if (command.threads) all.push_back("train.threads=" + std::to_string(*command.threads));
  if (command.seed) all.push_back("train.seed=" + std::to_string(*command.seed));
  return all;
}

// --run-dir, else the configuration's run_dir, else runs/<name of the configuration file>.
std::string choose_run_dir(const TrainCommand& command, const Config& config) {
  if (!command.run_dir.empty()) return command.run_dir;
  if (const auto given = config.optional<std::string>("run_dir")) return *given;
  return "runs/" + std::filesystem::path(command.config_path).stem().string();
}

void describe(const Experiment& e, const Trainer& trainer, const RunFolder& folder) {
  log_info("run folder " + folder.path());
  log_info(std::to_string(num_threads()) + (num_threads() == 1 ? " thread, " : " threads, ") +
           active_instruction_set() + " kernels, dense products by " + dense_provider());
  for (const ParameterPtr& parameter : e.model->parameters()) {
    std::string line = "  " + parameter->name() + " " + parameter->shape().to_string();
    if (!parameter->sparsified_by.empty()) {
      line += ", " + parameter->sparsified_by + ", " + std::to_string(parameter->pattern()->nnz()) +
              " nonzeros";
    }
    log_info(line);
  }
  log_info(std::to_string(e.nnz()) + " of " + std::to_string(e.numel()) +
           " parameters are nonzeros; " + std::to_string(e.data.train->size()) +
           " training examples, " + std::to_string(trainer.total_steps()) + " steps");
}

int finish(RunEnd end, const RunFolder& folder) {
  if (end == RunEnd::Interrupted) return kInterrupted;
  if (end == RunEnd::Terminated) return kTerminated;
  log_info("results are in " + folder.path() + " (summary.json, metrics.jsonl, checkpoints/)");
  return kDone;
}

void start_logging(const TrainCommand& command, const RunFolder* folder) {
  log_to_console(command.quiet ? LogLevel::Warning : LogLevel::Info);
  if (folder != nullptr) log_to_file(folder->log_path());
}

int train_new(const TrainCommand& command) {
  if (command.config_path.empty()) {
    throw ConfigError("train needs a CONFIG file (or --resume with --run-dir)");
  }
  Config config = load_yaml(command.config_path);
  for (const std::string& assignment : all_overrides(command)) apply_override(config, assignment);
  config.set("run_dir", choose_run_dir(command, config));
  const auto experiment = build_experiment(config);
  const RunFolder folder = RunFolder::create(config.required<std::string>("run_dir"));
  start_logging(command, &folder);
  write_file_atomically(folder.config_path(), config.to_yaml());
  Trainer trainer(*experiment, folder,
                  command.quiet ? ProgressStyle::Quiet : default_progress_style());
  describe(*experiment, trainer, folder);
  return finish(trainer.run(), folder);
}

// A damaged checkpoint is set aside under another name: never deleted, never tried again.
void set_aside(const RunFolder& folder, const std::string& good) {
  for (const int64_t step : folder.checkpoint_steps()) {
    const std::string path = folder.checkpoint_path(step);
    if (path == good) return;
    std::error_code ignored;
    std::filesystem::rename(path, path + ".damaged", ignored);
  }
}

int train_resumed(const TrainCommand& command) {
  Config given;
  if (!command.config_path.empty()) given = load_yaml(command.config_path);
  if (command.run_dir.empty() && given.is_null()) {
    throw ConfigError("--resume needs the run's folder (--run-dir) or its CONFIG file");
  }
  const RunFolder folder = RunFolder::open(choose_run_dir(command, given));
  Config config = load_yaml(folder.config_path());
  if (!given.is_null()) require_same_model(config, given);
  const std::vector<std::string> overrides = all_overrides(command);
  apply_resume_overrides(config, overrides);
  start_logging(command, &folder);
  for (const std::string& line : unused_changes(config, given)) log_warning(line);

  std::vector<std::string> refused;
  const std::string checkpoint = folder.newest_good_checkpoint(refused);
  for (const std::string& line : refused) log_warning(line + "; going back to an older one");
  const auto experiment = build_experiment(config);
  Trainer trainer(*experiment, folder,
                  command.quiet ? ProgressStyle::Quiet : default_progress_style());
  trainer.resume(checkpoint);
  set_aside(folder, checkpoint);
  remove_temporary_files(folder.path());
  remove_temporary_files(folder.path() + "/checkpoints");
  if (!overrides.empty()) write_file_atomically(folder.config_path(), config.to_yaml());
  describe(*experiment, trainer, folder);
  return finish(trainer.run(), folder);
}

}  // namespace

int run_train(const TrainCommand& command) {
  return command.resume ? train_resumed(command) : train_new(command);
}

}  // namespace lacuna
