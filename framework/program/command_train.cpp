// `lacuna train`: a new run, or the next part of one.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/job/job.hpp"
#include "lacuna/framework/program/actions/prepared_run.hpp"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/program/output/run_summary.hpp"
#include "lacuna/framework/program/settings/checkpoint_choice.hpp"
#include "lacuna/framework/program/verification.hpp"
#include "lacuna/framework/train/loop/profile_report.hpp"
#include "lacuna/framework/train/weights/model_file.h"

namespace lacuna {
namespace {

std::vector<std::string> all_overrides(const TrainCommand& command) {
  std::vector<std::string> all = command.overrides;
  if (command.threads) all.push_back("train.threads=" + *command.threads);
  if (command.seed) all.push_back("train.seed=" + *command.seed);
  return all;
}

// On the standard output: the result of the run, or one line of it with --quiet.
void print_result(const Config& summary, const RunFolder& folder, NextUse next, bool quiet) {
  std::error_code missing;
  const bool has_best = std::filesystem::exists(folder.best_path(), missing);
  if (quiet) {
    std::printf("%s\n", result_line(summary, folder.path()).c_str());
    return;
  }
  for (const std::string& line : result_table(summary, folder.path(), has_best, next)) {
    std::printf("%s\n", line.c_str());
    log_info_to_file(line);  // once is enough for a terminal that shows both outputs
  }
}

// The lines of a quiet run go only to the log file.
ProgressStyle progress_style(const TrainCommand& command) {
  return command.quiet ? ProgressStyle::Lines : default_progress_style();
}

// The files are those of this part of the run.
void report_profile(const Profile& profile, const RunFolder& folder, bool quiet) {
  write_profile(profile, folder.path());
  constexpr size_t kShown = 25;
  for (const std::string& line : profile_table(profile, kShown)) {
    if (!quiet) std::printf("%s\n", line.c_str());
    log_info_to_file(line);
  }
}

int run_to_end(PreparedRun& run, const TrainCommand& command, Verification* verification) {
  Experiment& experiment = *run.experiment;
  if (verification != nullptr) {
    verification->watch(experiment);
    run.trainer->watch_steps([&](double loss) { verification->compare_step(experiment, loss); });
  }
  std::optional<Profiler> profiler;
  if (command.profile && experiment.is_first()) profiler.emplace(*experiment.model);
  const RunEnd end = run.trainer->run();
  const std::optional<Profile> profile =
      profiler ? std::optional(profiler->finish()) : std::nullopt;
  if (verification != nullptr) verification->finish();
  const bool has_ended = end == RunEnd::Finished || end == RunEnd::StoppedEarly;
  if (has_ended && experiment.is_first()) {
    print_result(run.trainer->summary(), run.folder, next_use(*experiment.data.train),
                 command.quiet);
  }
  if (profile) report_profile(*profile, run.folder, command.quiet);
  if (end == RunEnd::Interrupted) return kInterrupted;
  if (end == RunEnd::Terminated) return kTerminated;
  return end == RunEnd::HungUp ? kHungUp : kDone;
}

void require_alone(const TrainCommand& command, const Communicator* job) {
  if (command.verify_steps == 0 || job == nullptr || job->size() == 1) return;
  throw ConfigError("--verify works with one process; start without a launcher");
}

// What --init-from names; with --last a checkpoint of it.
std::string first_weights(const TrainCommand& command) {
  const std::string& path = *command.init_from;
  std::error_code error;
  require_run_for_last(path, command.last);
  if (!command.last || !std::filesystem::is_directory(path, error)) return path;
  if (is_foreign_weights(path)) {
    throw ConfigError("--last is for a run folder, and '" + path + "' is another tool's");
  }
  try {
    return find_checkpoint(path, KeptCheckpoint::Last).path();
  } catch (const CheckpointError& problem) {
    throw CheckpointError(std::string("--init-from: ") + problem.what());
  }
}

int train(const TrainCommand& command, const std::shared_ptr<Communicator>& job) {
  if (!command.resume && command.config_path.empty()) {
    throw ConfigError("train needs a CONFIG file (or --resume with --run-dir)");
  }
  RunToPrepare wanted{.config = {.path = command.config_path, .overrides = all_overrides(command)},
                      .run_dir = command.run_dir,
                      .resume = command.resume,
                      .change = command.change,
                      .console = command.quiet     ? LogLevel::Warning
                                 : command.verbose ? LogLevel::Detail
                                                   : LogLevel::Info,
                      .progress = progress_style(command),
                      .job = job};
  if (command.init_from) wanted.init_from = first_weights(command);
  std::unique_ptr<Verification> verification;  // the reference of --verify
  wanted.when_built = [&](const Experiment& experiment,
                          const std::optional<CheckpointFile>& checkpoint) {
    if (command.verify_steps == 0) return;
    verification =
        std::make_unique<Verification>(experiment.config, command.verify_steps, checkpoint);
  };
  PreparedRun run = prepare_run(wanted);
  return run_to_end(run, command, verification.get());
}

}  // namespace

int run_train(const TrainCommand& command) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that closes our output does not end the run
  if (command.resume && command.init_from) {
    throw ConfigError(
        "--init-from cannot be used with --resume, because a resumed run has its own weights; "
        "start a new run in another --run-dir");
  }
  if (command.last && !command.init_from) {
    throw ConfigError("--last needs --init-from: it selects a checkpoint of that run");
  }
  if (command.change && !command.resume) {
    throw ConfigError("--change needs --resume: a new run has nothing to change");
  }
  const std::shared_ptr<Communicator> job = enter_job();
  if (job != nullptr) {
    require_same_program(*job);
    require_same_command(*job, command.resume ? "--resume" : "a new run");
  }
  require_alone(command, job.get());
  return train(command, job);
}

}  // namespace lacuna
