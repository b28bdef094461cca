// `lacuna train`: a new run, or the next part of one.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/job/job.hpp"
#include "lacuna/framework/job/shared_checkpoint.hpp"
#include "lacuna/framework/nn/neurons.hpp"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/program/output/run_summary.hpp"
#include "lacuna/framework/program/process_options.hpp"
#include "lacuna/framework/program/settings/checkpoint_choice.hpp"
#include "lacuna/framework/program/settings/config_changes.hpp"
#include "lacuna/framework/program/settings/data_paths.hpp"
#include "lacuna/framework/program/verification.hpp"
#include "lacuna/framework/records/start_record.hpp"
#include "lacuna/framework/train/checks/run_origins.hpp"
#include "lacuna/framework/train/loop/profile_report.hpp"
#include "lacuna/framework/train/loop/run_length.hpp"
#include "lacuna/framework/train/loop/trainer.hpp"
#include "lacuna/framework/train/weights/model_file.h"

namespace lacuna {
namespace {

std::vector<std::string> all_overrides(const TrainCommand& command) {
  std::vector<std::string> all = command.overrides;
  if (command.threads) all.push_back("train.threads=" + *command.threads);
  if (command.seed) all.push_back("train.seed=" + *command.seed);
  return all;
}

// --run-dir, else the configuration's run_dir, else runs/<name of the configuration file>.
std::string choose_run_dir(const TrainCommand& command, const Config& config) {
  std::optional<std::string> run_dir = command.run_dir;
  if (!run_dir && config.is_map()) run_dir = config.optional<std::string>("run_dir");
  if (run_dir && run_dir->empty()) throw ConfigError("the run folder's name is empty");
  if (run_dir) return *run_dir;
  return "runs/" + std::filesystem::path(command.config_path).stem().string();
}

// Of several processes the first one alone has a console and a file.
void start_logging(const TrainCommand& command, const RunFolder& folder, const Communicator* job) {
  if (job != nullptr && job->rank() > 0) return;
  log_to_console(command.quiet     ? LogLevel::Warning
                 : command.verbose ? LogLevel::Detail
                                   : LogLevel::Info);
  log_to_file(folder.log_path());
}

void describe(const Experiment& e) {
  for (const std::string& line : run_header(e)) log_info(line);
  for (const std::string& line : parameter_lines(e)) log_detail(line);
  for (const std::string& note : e.notes) log_info("init_from: " + note);
  for (const std::string& warning : e.warnings) log_warning("init_from: " + warning);
  for (const ParameterPtr& parameter : e.model->parameters()) {
    if (parameter->pattern()->nnz() == 0 && parameter->numel() > 0) {
      log_warning("the parameter '" + parameter->name() + "' has no nonzero");
    }
  }
  if (const auto counts = count_neurons(*e.model)) {
    log_detail(fmt::format("{} of {} neurons lie on a path from input to output", counts->on_path,
                           counts->neurons));
  }
}

// On the standard output: what came of the run, a line of it where little is wanted.
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

// A quiet run's lines go to the log file alone.
ProgressStyle progress_style(const TrainCommand& command) {
  return command.quiet ? ProgressStyle::Lines : default_progress_style();
}

// The reference that --verify asks for, or null.
std::unique_ptr<Verification> make_verification(
    const TrainCommand& command, const Experiment& experiment,
    const std::optional<CheckpointFile>& checkpoint = std::nullopt) {
  if (command.verify_steps == 0) return nullptr;
  return std::make_unique<Verification>(experiment.config, command.verify_steps, checkpoint);
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

int run_to_end(Trainer& trainer, const TrainCommand& command, Experiment& experiment,
               const RunFolder& folder, Verification* verification) {
  describe(experiment);
  if (verification != nullptr) {
    verification->watch(experiment);
    trainer.watch_steps([&](double loss) { verification->compare_step(experiment, loss); });
  }
  std::optional<Profiler> profiler;
  if (command.profile && experiment.is_first()) profiler.emplace(*experiment.model);
  const RunEnd end = trainer.run();
  const std::optional<Profile> profile =
      profiler ? std::optional(profiler->finish()) : std::nullopt;
  if (verification != nullptr) verification->finish();
  const bool has_ended = end == RunEnd::Finished || end == RunEnd::StoppedEarly;
  if (has_ended && experiment.is_first()) {
    print_result(trainer.summary(), folder, next_use(*experiment.data.train), command.quiet);
  }
  if (profile) report_profile(*profile, folder, command.quiet);
  if (end == RunEnd::Interrupted) return kInterrupted;
  if (end == RunEnd::Terminated) return kTerminated;
  return end == RunEnd::HungUp ? kHungUp : kDone;
}

void require_alone(const TrainCommand& command, const Communicator* job) {
  if (command.verify_steps == 0 || job == nullptr || job->size() == 1) return;
  throw ConfigError("--verify compares runs of one process; start one");
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

int train_new(const TrainCommand& command, const std::shared_ptr<Communicator>& job) {
  if (command.config_path.empty()) {
    throw ConfigError("train needs a CONFIG file (or --resume with --run-dir)");
  }
  Config config = load_yaml(command.config_path);
  const std::vector<std::string> found = find_beside(config, command.config_path);
  apply_overrides(config, all_overrides(command));
  if (command.init_from) set_init_from(config, first_weights(command), "--init-from");
  write_new_run_keys(config);
  make_paths_absolute(config);
  const std::string run_dir = choose_run_dir(command, config);
  const bool is_first = job == nullptr || job->rank() == 0;
  if (is_first) RunFolder::require_unused(run_dir);  // before the data is read: that may take long
  if (config.is_map()) config.set("run_dir", run_dir);
  if (job != nullptr) require_same_config(*job, config);
  apply_process_options(config);
  MeasuredLength measured;
  if (has_seconds(config)) measured = build_for_seconds(config, job);
  const auto experiment = measured.experiment ? std::move(measured.experiment)
                                              : build_experiment(config, Start::Fresh, job);
  const auto verification = make_verification(command, *experiment);
  const RunFolder folder =
      is_first ? RunFolder::create(run_dir, config.to_yaml()) : RunFolder::of_another(run_dir);
  start_logging(command, folder, job.get());
  if (is_first) append_start(folder.path(), start_of_process(num_threads()));
  log_info("run       " + folder.path());
  for (const std::string& line : found) log_info(line);
  if (!measured.note.empty()) log_info(measured.note);
  Trainer trainer(*experiment, folder, progress_style(command));
  return run_to_end(trainer, command, *experiment, folder, verification.get());
}

// For going on from the checkpoint; there is none when the run was killed before it had written
// one.
void prepare_folder(const RunFolder& folder, const std::optional<CheckpointFile>& checkpoint) {
  std::error_code missing;
  const auto metrics_bytes = std::filesystem::file_size(folder.metrics_path(), missing);
  if (checkpoint) {
    folder.set_aside_newer_than(checkpoint->path());
  } else if (!missing && metrics_bytes > 0) {
    throw CheckpointError("the run in '" + folder.path() +
                          "' has begun, but its checkpoints are gone: it cannot be resumed");
  } else {
    log_info("there is no checkpoint yet: the run begins at step 0");
  }
}

std::string changes_path(const RunFolder& folder) { return folder.path() + "/changes.jsonl"; }

int64_t step_of(const RunFolder& folder, const CheckpointFile& checkpoint) {
  for (const int64_t step : folder.checkpoint_steps()) {
    if (folder.checkpoint_path(step) == checkpoint.path()) return step;
  }
  return checkpoint.read().step;
}

// What was recorded that the checkpoint's configuration may not have.
std::vector<ConfigChange> since(const std::vector<ConfigChange>& changes, int64_t step) {
  std::vector<ConfigChange> later;
  std::ranges::copy_if(changes, std::back_inserter(later),
                       [&](const ConfigChange& change) { return change.step >= step; });
  return later;
}

// changes.jsonl with what has changed since the checkpoint; what it tells of later steps, or of
// this one and did not come to be, goes.
void record_changes(const RunFolder& folder, const std::vector<ConfigChange>& told,
                    const std::vector<ConfigChange>& made, const Config& before, int64_t step) {
  std::vector<ConfigChange> all;
  for (const ConfigChange& change : told) {
    const bool is_in = before.peek(change.key) == change.after;
    if (change.step < step || (change.step == step && is_in)) all.push_back(change);
  }
  for (const ConfigChange& change : made) {
    all.push_back(change);
    log_info(fmt::format("changed at step {}: {} (changes.jsonl)", step, in_words(change)));
  }
  write_changes(changes_path(folder), all);
}

// Where a run goes on: what its folder holds, and the configuration with what is changed now.
struct Resumption {
  RunFolder folder;
  std::optional<CheckpointFile> checkpoint = {};
  Config config = {}, written = {};
  Config before = {}, asked = {};       // the configuration as it was, and with what was asked for
  std::vector<ConfigChange> told = {};  // changes.jsonl
  int64_t step = 0;
};

// A time was made a number of steps when the run began.
std::vector<std::string> without_seconds(std::vector<std::string> overrides) {
  std::erase_if(overrides, [](const std::string& assignment) {
    return assignment.starts_with("train.seconds=");
  });
  return overrides;
}

// Of several processes the first one alone looks.
Resumption prepare_resumption(const TrainCommand& command, const Communicator* job) {
  const std::vector<std::string> overrides = without_seconds(all_overrides(command));
  Config given = Config::map();
  if (!command.config_path.empty()) {
    given = load_yaml(command.config_path);
    find_beside(given, command.config_path);
  }
  // As for a new run, so that the command that began one goes on with it. run_dir may be among
  // them.
  apply_overrides(given, overrides);
  make_paths_absolute(given);
  if (command.config_path.empty() && !command.run_dir && !given.has("run_dir")) {
    throw ConfigError(
        "--resume needs the run's folder (--run-dir) or its CONFIG file: lacuna train --resume "
        "--run-dir DIR, where DIR is the folder of the run to continue");
  }
  const RunFolder folder = RunFolder::open(choose_run_dir(command, given));
  if (has_seconds(given)) given.get("train").erase("seconds");
  if (command.config_path.empty()) given = Config();  // --set alone says nothing of the rest
  Config config = load_yaml(folder.config_path());
  make_paths_absolute(config);  // which earlier versions did not
  start_logging(command, folder, job);
  if (overrides.size() < all_overrides(command).size()) {
    log_info("train.seconds: the run has its number of steps from its beginning");
  }
  Config written = config.clone();
  const std::optional<CheckpointFile> checkpoint = folder.newest_good_checkpoint();
  const int64_t step = checkpoint ? step_of(folder, *checkpoint) : 0;
  const std::vector<ConfigChange> told = read_changes(changes_path(folder));
  const MayChange may{.optimizer = command.change, .recorded = since(told, step)};
  Config before = config.clone();
  if (checkpoint) {
    config = parse_yaml(checkpoint->read_config(), folder.config_path());
    make_paths_absolute(config);
    before = config.clone();
    take_changes(config, written, folder.config_path(), may);
  }
  apply_resume_overrides(config, overrides, may);
  const Config asked = config.clone();
  make_paths_absolute(config);
  config.set("run_dir", folder.path());
  require_same_model(config, given);
  for (const std::string& line : unused_changes(config, given)) log_warning(line);

  prepare_folder(folder, checkpoint);
  apply_resume_overrides(written, overrides, may);
  make_paths_absolute(written);
  return {folder, checkpoint, config, written, before, asked, told, step};
}

int train_resumed(const TrainCommand& command, const std::shared_ptr<Communicator>& job) {
  const bool is_first = job == nullptr || job->rank() == 0;
  Resumption run = is_first ? prepare_resumption(command, job.get())
                            : Resumption{.folder = RunFolder::of_another("")};
  Config config = job == nullptr ? run.config : config_of_first(*job, run.config);
  const SharedCheckpoint shared(job.get(), run.checkpoint);
  const std::optional<CheckpointFile>& checkpoint = shared.file();
  const RunFolder& folder = run.folder;
  apply_process_options(config);
  const auto experiment =
      build_experiment(config, checkpoint ? Start::FromCheckpoint : Start::Fresh, job);
  if (checkpoint && is_first) {
    refuse_additions(experiment->config, run.written, folder.config_path());
  }
  Trainer trainer(*experiment, folder, progress_style(command));
  if (checkpoint) {
    trainer.resume(*checkpoint,
                   command.change ? ChangedOrigins::Accepted : ChangedOrigins::Refused);
  }
  const auto verification = make_verification(command, *experiment, checkpoint);
  if (is_first) {
    record_changes(folder, run.told,
                   optimizer_changes(run.before, run.asked, experiment->config, run.step),
                   run.before, run.step);
    // With what --set has changed.
    write_file_atomically(folder.config_path(), config.to_yaml());
    const bool goes_on = !folder.has_summary() || trainer.step() < trainer.total_steps();
    if (goes_on) append_start(folder.path(), start_of_process(num_threads()));
  }
  return run_to_end(trainer, command, *experiment, folder, verification.get());
}

}  // namespace

int run_train(const TrainCommand& command) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader of our messages that goes away ends no run
  if (command.resume && command.init_from) {
    throw ConfigError(
        "--init-from cannot be used with --resume: a resumed run has its own weights; start a new "
        "run in another --run-dir");
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
  return command.resume ? train_resumed(command, job) : train_new(command, job);
}

}  // namespace lacuna
