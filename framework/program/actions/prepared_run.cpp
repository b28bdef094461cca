#include "lacuna/framework/program/actions/prepared_run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/job/job.hpp"
#include "lacuna/framework/job/shared_checkpoint.hpp"
#include "lacuna/framework/nn/neurons.hpp"
#include "lacuna/framework/program/actions/read_given.hpp"
#include "lacuna/framework/program/output/run_summary.hpp"
#include "lacuna/framework/program/settings/config_changes.hpp"
#include "lacuna/framework/program/settings/data_paths.hpp"
#include "lacuna/framework/records/start_record.hpp"
#include "lacuna/framework/train/checks/vocabulary_checks.hpp"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/loop/run_length.hpp"
#include "lacuna/framework/train/weights/model_file.h"

namespace lacuna {
namespace {

bool is_first(const RunToPrepare& wanted) {
  return wanted.job == nullptr || wanted.job->rank() == 0;
}

// The folder that is asked for, else the configuration's run_dir, else runs/<name of its file>.
std::string choose_run_dir(const RunToPrepare& wanted, const Config& config) {
  std::optional<std::string> run_dir = wanted.run_dir;
  if (!run_dir && config.is_map()) run_dir = config.optional<std::string>("run_dir");
  if (run_dir && run_dir->empty()) throw ConfigError("the run folder's name is empty");
  if (run_dir) return *run_dir;
  if (wanted.config.path.empty()) {
    throw ConfigError("the run needs a folder: give --run-dir, or run_dir in the configuration");
  }
  return "runs/" + std::filesystem::path(wanted.config.path).stem().string();
}

// Of several processes, only the first one has a console and a file.
void start_logging(const RunToPrepare& wanted, const RunFolder& folder) {
  if (!is_first(wanted)) return;
  if (wanted.console) log_to_console(*wanted.console);
  log_to_file(folder.log_path());
}

void describe(const Experiment& e) {
  for (const std::string& line : run_header(e)) log_info(line);
  for (const std::string& line : parameter_lines(e)) log_detail(line);
  for (const std::string& note : e.notes) log_info("init_from: " + note);
  for (const std::string& warning : e.warnings) log_warning("init_from: " + warning);
  for (const ParameterPtr& parameter : e.model->parameters()) {
    if (parameter->pattern()->nnz() == 0 && parameter->numel() > 0) {
      log_warning("the parameter '" + parameter->name() + "' has no nonzeros");
    }
  }
  if (const auto counts = count_neurons(*e.model)) {
    log_detail(fmt::format("{} of {} neurons lie on a path from input to output", counts->on_path,
                           counts->neurons));
  }
}

// Lines about files found next to the configuration are kept until the log is open.
ReportLine into(std::vector<std::string>& lines) {
  return [&lines](const std::string& line) { lines.push_back(line); };
}

PreparedRun prepare_new(const RunToPrepare& wanted) {
  std::vector<std::string> found;
  Config config = read_given(wanted.config, into(found));
  apply_overrides(config, wanted.config.overrides);
  if (wanted.init_from) set_init_from(config, *wanted.init_from, "--init-from");
  write_new_run_keys(config.peek("data"));
  make_paths_absolute(config);
  const std::string run_dir = choose_run_dir(wanted, config);
  const std::shared_ptr<Communicator>& job = wanted.job;
  // Before the data is read: that may take long.
  if (is_first(wanted)) RunFolder::require_unused(run_dir);
  if (config.is_map()) config.set("run_dir", run_dir);
  if (job != nullptr) require_same_config(*job, config);
  apply_process_options(config);
  MeasuredLength measured;
  if (has_seconds(config)) measured = build_for_seconds(config, job);
  auto experiment = measured.experiment ? std::move(measured.experiment)
                                        : build_experiment(config, Start::Fresh, job);
  if (wanted.when_built) wanted.when_built(*experiment, std::nullopt);
  const RunFolder folder = is_first(wanted) ? RunFolder::create(run_dir, config.to_yaml())
                                            : RunFolder::of_another(run_dir);
  start_logging(wanted, folder);
  if (is_first(wanted)) append_start(folder.path(), start_of_process(num_threads()));
  log_info("run       " + folder.path());
  for (const std::string& line : found) log_info(line);
  if (!measured.note.empty()) log_info(measured.note);
  auto trainer = std::make_unique<Trainer>(*experiment, folder, wanted.progress);
  return {folder, std::move(experiment), std::move(trainer)};
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

// A resumed run: the contents of its folder, and the configuration with the present changes.
struct Resumption {
  RunFolder folder;
  std::optional<CheckpointFile> checkpoint = {};
  Config config = {}, written = {};
  Config before = {}, asked = {};       // the configuration before and after the requested changes
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

// Of several processes, only the first one looks.
Resumption find_resumption(const RunToPrepare& wanted) {
  const std::vector<std::string> overrides = without_seconds(wanted.config.overrides);
  Config given = wanted.config.is_empty() ? Config::map() : read_given(wanted.config, nullptr);
  // As for a new run, so that the command that began one goes on with it. run_dir may be among
  // them.
  apply_overrides(given, overrides);
  make_paths_absolute(given);
  if (wanted.config.is_empty() && !wanted.run_dir && !given.has("run_dir")) {
    throw ConfigError(
        "--resume needs the run's folder (--run-dir) or its CONFIG file: lacuna train --resume "
        "--run-dir DIR, where DIR is the folder of the run to continue");
  }
  const RunFolder folder = RunFolder::open(choose_run_dir(wanted, given));
  if (has_seconds(given)) given.get("train").erase("seconds");
  if (wanted.config.is_empty()) given = Config();  // --set alone does not state the rest
  Config config = load_yaml(folder.config_path());
  make_paths_absolute(config);  // which earlier versions did not
  start_logging(wanted, folder);
  if (overrides.size() < wanted.config.overrides.size()) {
    log_info(
        "train.seconds: the number of steps was fixed when the run began; change train.steps "
        "instead");
  }
  Config written = config.clone();
  const std::optional<CheckpointFile> checkpoint = folder.newest_good_checkpoint();
  const int64_t step = checkpoint ? step_of(folder, *checkpoint) : 0;
  const std::vector<ConfigChange> told = read_changes(changes_path(folder));
  const MayChange may{.optimizer = wanted.change, .recorded = since(told, step)};
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

// Text with other words may not fit the model or the loss of the run, whose errors would name keys
// that cannot be changed: so it is compared before these are built.
DataCheck vocabulary_check(const std::optional<CheckpointFile>& checkpoint) {
  if (!checkpoint) return {};
  return [file = *checkpoint](const DataSplits& data) {
    if (data.train->tokenizer() == nullptr) return;
    const StateDict state = file.read().state;
    naming_file(file.path(), [&] {
      if (!state.contains("data/example_shape")) return;
      require_learned_vocabulary(*data.train,
                                 InputFormat::from_state(state.below("data")).tokenizer);
    });
  };
}

// What a new run of this length would refuse, and one of the length before would not. *Requires*
// the experiment before its state is loaded, as that of a new run.
void warn_about_plan(const Experiment& experiment, const Config& before) {
  if (experiment.sparsity == nullptr) return;
  const Period length = TrainOptions::from_config(before.get("train").clone()).length;
  const int64_t steps = experiment.total_steps(),
                steps_before = length.in_steps(experiment.steps_per_epoch());
  if (steps == steps_before) return;
  std::string mistake;
  try {
    experiment.sparsity->plan(steps);
    return;
  } catch (const ConfigError& error) {
    mistake = error.what();
  }
  try {
    experiment.sparsity->plan(steps_before);
  } catch (const ConfigError& error) {
    if (error.what() == mistake) return;  // of phases that go on from a pruned run
  }
  log_warning(fmt::format("in {}, the run does not do what its sparsity section states: {}",
                          plural(steps, "step"), mistake));
}

PreparedRun prepare_resumed(const RunToPrepare& wanted) {
  const std::shared_ptr<Communicator>& job = wanted.job;
  Resumption run =
      is_first(wanted) ? find_resumption(wanted) : Resumption{.folder = RunFolder::of_another("")};
  const Config config = job == nullptr ? run.config : config_of_first(*job, run.config);
  const SharedCheckpoint shared(job.get(), run.checkpoint);  // until it has been read
  const std::optional<CheckpointFile>& checkpoint = shared.file();
  const RunFolder& folder = run.folder;
  apply_process_options(config);
  auto experiment = build_experiment(config, checkpoint ? Start::FromCheckpoint : Start::Fresh, job,
                                     vocabulary_check(checkpoint));
  if (checkpoint && is_first(wanted)) {
    refuse_additions(experiment->config, run.written, folder.config_path(),
                     {.optimizer = wanted.change});
  }
  auto trainer = std::make_unique<Trainer>(*experiment, folder, wanted.progress);
  if (checkpoint) {
    if (is_first(wanted)) warn_about_plan(*experiment, run.before);
    trainer->resume(*checkpoint,
                    wanted.change ? ChangedOrigins::Accepted : ChangedOrigins::Refused);
  }
  if (wanted.when_built) wanted.when_built(*experiment, checkpoint);
  if (is_first(wanted)) {
    record_changes(folder, run.told,
                   optimizer_changes(run.before, run.asked, experiment->config, run.step),
                   run.before, run.step);
    // With what the overrides have changed.
    write_file_atomically(folder.config_path(), config.to_yaml());
    const bool goes_on = !folder.has_summary() || trainer->step() < trainer->total_steps();
    if (goes_on) append_start(folder.path(), start_of_process(num_threads()));
  }
  return {folder, std::move(experiment), std::move(trainer)};
}

}  // namespace

PreparedRun prepare_run(const RunToPrepare& wanted) {
  PreparedRun run = wanted.resume ? prepare_resumed(wanted) : prepare_new(wanted);
  describe(*run.experiment);
  return run;
}

}  // namespace lacuna
