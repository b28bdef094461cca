#include "lacuna/framework/program/actions/source_run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/program/output/evaluation_report.hpp"
#include "lacuna/framework/program/settings/checkpoint_choice.hpp"
#include "lacuna/framework/train/checks/held_out_changes.hpp"
#include "lacuna/framework/train/loop/run_state.hpp"
#include "lacuna/framework/train/weights/model_file.h"

namespace lacuna {
namespace {

// Keys of `train` are taken one by one; of the length the one that is given counts.
void take_train(Config& config, const Config& given) {
  if (!given.is_map() || !config.has("train")) return config.set("train", given);
  Config train = config.get("train");
  if (given.has("steps")) train.erase("epochs");
  if (given.has("epochs")) train.erase("steps");
  for (const auto& [key, value] : given.entries()) train.set(key, value);
}

// The default teacher is the run's own network.
void complete_teacher(Config& config, const SourceRun& source) {
  if (!source.config) return;
  Config loss = config.get("loss");
  if (loss.is_scalar() && loss.text() == "distillation") {
    loss = Config::map({{"type", "distillation"}});
    config.set("loss", loss);
  }
  if (!loss.is_map() || loss.peek("type").text() != "distillation") return;
  if (loss.peek("teacher").is_null()) loss.set("teacher", source.path);
}

// Data of the same kind is normalized, and images are turned, as the run's were.
void keep_run_normalization(const SourceRun& source, Config& given_data) {
  const Config data = source.config->get("data");
  if (!given_data.is_map() || !data.is_map()) return;
  if (!(data.get("type") == given_data.get("type"))) return;
  for (const auto& [key, value] : dataset_type(data).new_run_keys) {
    if (data.has(key) && !given_data.has(key)) given_data.set(key, data.get(key).clone());
  }
  if (!data.has("normalize")) return;
  if (given_data.has("normalize")) {
    if (given_data.get("normalize").is_scalar()) {
      log_warning(given_data.get("normalize").where() +
                  ": inputs are normalized with the statistics of these examples instead of the "
                  "run's; leave normalize out to keep the run's");
    }
    return;
  }
  const InputFormat format = InputFormat::from_state(source.checkpoint.state.below("data"));
  given_data.set("normalize", "run");  // a place that is filled in
  Config holder = Config::map({{"data", given_data}});
  keep_normalization(holder, format);
}

}  // namespace

SourceRun read_source_run(const std::string& given, bool last, const ReportLine& report_line) {
  if (is_foreign_weights(given)) {
    if (!last) return {.path = given};
    throw ConfigError("--last is for a run folder, and selects its last checkpoint; '" + given +
                      "' is another tool's: leave --last out");
  }
  const CheckpointFile file = choose_checkpoint(given, last, report_line);
  SourceRun source{.path = file.path(), .checkpoint = file.read()};
  if (!source.checkpoint.config_yaml.empty()) {
    source.config = saved_config(source.checkpoint, source.path);
  }
  return source;
}

void take_sections(Config& given, const SourceRun& source,
                   const std::vector<std::string>& assignments,
                   const std::vector<std::string>& merged) {
  if (!source.config || !given.is_map()) return;
  for (const std::string& assignment : assignments) {
    const size_t end = assignment.find_first_of(".=");
    const std::string section = assignment.substr(0, end);
    const bool is_part = end != std::string::npos && assignment[end] == '.';
    const bool is_merged = std::ranges::find(merged, section) != merged.end();
    if (!is_part || is_merged || given.has(section) || !source.config->has(section)) continue;
    Config taken = source.config->get(section).clone();
    if (section == "data") taken.erase("normalize");  // kept as it was measured
    given.set(section, taken);
  }
}

Config merge_sections(const SourceRun& source, const Config& given, const std::string& command) {
  Config config = source.config ? source.config->clone() : Config::map();
  for (auto [key, value] : given.entries()) {
    if (key == "data" && source.config) keep_run_normalization(source, value);
    key == "train" ? take_train(config, value) : config.set(key, value);
    if (key == "model") config.erase("convolution_algorithms");
  }
  config.erase("csr_up_to");  // measured for what the run had
  complete_teacher(config, source);
  for (const char* section : {"model", "data", "optimizer"}) {
    if (config.has(section)) continue;
    throw ConfigError(fmt::format(
        "{2} {0}: it holds weights without the configuration of a run, so `{1}` must be given; or "
        "first make a run of it with `lacuna import {0} --config CONFIG --out RUN`, and {2} RUN",
        source.path, section, command));
  }
  return config;
}

void refuse_own_folder(const Config& given, const std::string& own,
                       const std::vector<std::string>& overrides) {
  const Config run_dir = given.peek("run_dir");
  if (run_dir.is_null() || run_dir.text() == own) return;
  for (const std::string& assignment : overrides) {
    if (!assignment.starts_with("run_dir")) continue;
    throw ConfigError("--set " + assignment +
                      ": the folder of the new run is given by --run-dir, '" + own + "'");
  }
  log_warning(
      fmt::format("{}: '{}' is not used; the folder of the new run is given by --run-dir, '{}'",
                  run_dir.where(), run_dir.text(), own));
}

void report_moved_split(const SourceRun& source, const Config& config) {
  if (!source.config) return;
  const std::string key = changed_split_key(*source.config, config);
  if (key.empty()) return;
  log_warning(
      fmt::format("{}: with another value than the run's ({}), training examples are in the "
                  "validation split; leave this key out to keep the run's split",
                  config.peek(key).where(), source.config->peek(key).text()));
}

void report_changed_data(const SourceRun& source, const Config& given, const Experiment& e) {
  if (!source.config || given.has("data")) return;
  for (const std::string& change : e.changes_since(source.checkpoint.state)) {
    log_warning(fmt::format("changed since '{}' was saved: {}", source.path, change));
  }
}

void start_from_source(Config& config, const Config& given, const std::string& path,
                       const std::string& command) {
  Config model = config.get("model");
  // Without a model given, it is how the run began.
  if (model.is_map() && !given.has("model")) model.erase("init_from");
  set_init_from(config, path, command + " " + path);
}

Config evaluation_of(const Experiment& e) {
  const std::unique_ptr<Sequential> model =
      rebuild_model(e.config, e.state_dict(), e.data.train->example_shape());
  const Config splits = evaluate_splits(*model, e.loss, e.data, e.train.eval_batch_size);
  if (splits.items().empty()) return {};
  Config entries = Config::list();
  for (Config split : splits.items()) {
    split.erase("confusion_matrix");
    entries.push_back(split);
  }
  Config result = entries.items().back().clone();
  result.set("splits", entries);
  return result;
}

Checkpoint first_checkpoint(const Experiment& e) {
  Checkpoint checkpoint{.state = e.state_dict(), .config_yaml = e.config.to_yaml()};
  RunState state;
  state.stopping = EarlyStopping(e.train.early_stopping);
  checkpoint.state.merge("trainer", state.state_dict());
  return checkpoint;
}

void write_new_run(const std::string& path, const Config& config,
                   const std::function<void(const RunFolder&)>& fill) {
  FolderReplacement whole(path);
  try {
    const RunFolder folder = RunFolder::create(whole.temporary_path(), config.to_yaml());
    fill(folder);
    RunFolder::require_unused(path);
    whole.commit_new();
    stop_logging_to_file();
  } catch (const StateError& error) {
    stop_logging_to_file();
    throw StateError(whole.in_place(error.what()));
  } catch (...) {
    stop_logging_to_file();  // the folder is removed; the error is shown on the console
    throw;
  }
}

}  // namespace lacuna
