#include "lacuna/framework/program/actions/prune_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/program/actions/prune_options.hpp"
#include "lacuna/framework/program/actions/prune_quantized.hpp"
#include "lacuna/framework/program/actions/quantized_parts.hpp"
#include "lacuna/framework/program/actions/read_given.hpp"
#include "lacuna/framework/program/output/evaluation_report.hpp"
#include "lacuna/framework/program/settings/checkpoint_choice.hpp"
#include "lacuna/framework/program/settings/config_changes.hpp"
#include "lacuna/framework/program/settings/data_paths.hpp"
#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/train/checks/held_out_changes.hpp"
#include "lacuna/framework/train/loop/run_state.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/runs/run_folder.h"
#include "lacuna/framework/train/weights/model_file.h"
#include "lacuna/sparsity/one_shot_pruning.h"

namespace lacuna {
namespace {

// What is pruned: a checkpoint of a run, or weights alone.
struct Source {
  std::string path;
  Checkpoint checkpoint = {};         // empty of a file of another program
  std::optional<Config> config = {};  // of the run
};

Source read_source(const std::string& given, bool last, const Tell& tell) {
  if (is_foreign_weights(given)) {
    if (!last) return {.path = given};
    throw ConfigError("--last is for a run folder, of which it takes the last checkpoint; '" +
                      given + "' is another tool's: leave --last out");
  }
  const CheckpointFile file = choose_checkpoint(given, last, tell);
  Source source{.path = file.path(), .checkpoint = file.read()};
  if (!source.checkpoint.config_yaml.empty()) {
    source.config = saved_config(source.checkpoint, source.path);
  }
  return source;
}

// Keys of `train` are taken one by one; of the length the one that is given counts.
void take_train(Config& config, const Config& given) {
  if (!given.is_map() || !config.has("train")) return config.set("train", given);
  Config train = config.get("train");
  if (given.has("steps")) train.erase("epochs");
  if (given.has("epochs")) train.erase("steps");
  for (const auto& [key, value] : given.entries()) train.set(key, value);
}

// Data of the same kind is normalized, and images are turned, as the run's were.
void keep_run_normalization(const Source& source, Config& given_data) {
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
                  ": inputs are normalized anew, by these examples, and not as those that the "
                  "run's weights were trained on; leave normalize out to keep that");
    }
    return;
  }
  const InputFormat format = InputFormat::from_state(source.checkpoint.state.below("data"));
  given_data.set("normalize", "run");  // a place that is filled in
  Config holder = Config::map({{"data", given_data}});
  keep_normalization(holder, format);
}

// A section of which --set gives a part, and that the file does not have, is the run's but for it.
void take_sections(Config& given, const Source& source,
                   const std::vector<std::string>& assignments) {
  if (!source.config || !given.is_map()) return;
  for (const std::string& assignment : assignments) {
    const size_t end = assignment.find_first_of(".=");
    const std::string section = assignment.substr(0, end);
    const bool is_part = end != std::string::npos && assignment[end] == '.';
    const bool is_merged = section == "train" || section == "sparsity";
    if (!is_part || is_merged || given.has(section) || !source.config->has(section)) continue;
    Config taken = source.config->get(section).clone();
    if (section == "data") taken.erase("normalize");  // kept as it was measured
    given.set(section, taken);
  }
}

// The run's configuration with the sections of the one that was given in their place.
Config merged_config(const Source& source, const Config& given,
                     const std::vector<std::string>& assignments) {
  if (!given.is_map()) given.fail("a map with `sparsity`");
  if (!given.has("sparsity")) {
    for (const std::string& assignment : assignments) {
      if (!assignment.starts_with("sparsity=")) continue;
      throw ConfigError("--set " + assignment +
                        ": this takes the `sparsity` section away, which says what to prune and "
                        "how; leave it out, or give sparsity={algorithm: wanda, sparsity: 0.5}");
    }
    given.error(
        "there is no `sparsity` section that says what to prune and how; give one of "
        "magnitude, wanda, sparsegpt or admm (docs/guides/pruning.md)");
  }
  Config config = source.config ? source.config->clone() : Config::map();
  for (auto [key, value] : given.entries()) {
    if (key == "data" && source.config) keep_run_normalization(source, value);
    key == "train" ? take_train(config, value) : config.set(key, value);
    if (key == "model") config.erase("convolution_algorithms");
  }
  config.erase("csr_up_to");  // measured for what the run had
  for (const char* section : {"model", "data", "optimizer"}) {
    if (config.has(section)) continue;
    throw ConfigError(fmt::format(
        "prune {0}: it holds weights without the configuration of a run, so `{1}` must "
        "be given beside `sparsity`; or make a run of it first, with `lacuna import {0} "
        "--config CONFIG --out RUN`, and prune RUN",
        source.path, section));
  }
  return config;
}

// The folder is --run-dir's. That a training configuration says another one is told; who sets it
// for this command means something by it.
void refuse_own_folder(const Config& given, const PruneRequest& request) {
  const Config run_dir = given.peek("run_dir");
  if (run_dir.is_null() || run_dir.text() == request.run_dir) return;
  for (const std::string& assignment : request.overrides) {
    if (!assignment.starts_with("run_dir")) continue;
    throw ConfigError("--set " + assignment + ": the folder of the pruned run is --run-dir's, '" +
                      request.run_dir + "'");
  }
  log_warning(fmt::format("{}: '{}' is not used; the folder of the pruned run is --run-dir's, '{}'",
                          run_dir.where(), run_dir.text(), request.run_dir));
}

// Loss and accuracy are told of the validation split, too.
void report_moved_split(const Source& source, const Config& config) {
  if (!source.config) return;
  const std::string key = changed_split_key(*source.config, config);
  if (key.empty()) return;
  log_warning(fmt::format(
      "{}: by another value than the run's ({}) examples that it was trained on are in the "
      "validation split; leave that key out to keep the run's split",
      config.peek(key).where(), source.config->peek(key).text()));
}

// So it is where the data lies where it lay, and has changed.
void report_changed_data(const Source& source, const Config& given, const Experiment& e) {
  if (!source.config || given.has("data")) return;
  for (const std::string& change : e.changes_since(source.checkpoint.state)) {
    log_warning(fmt::format("changed since '{}' was saved: {}", source.path, change));
  }
}

// The weights are those of the checkpoint, with their masks; `rename` and `skip` may be given.
void start_from(Config& config, const Config& given, const std::string& path) {
  Config model = config.get("model");
  // Without a model given, it is how the run began.
  if (model.is_map() && !given.has("model")) model.erase("init_from");
  set_init_from(config, path, "prune " + path);
}

// What is wrong of the run only because a section that was given took the place of the run's is
// said of that one.
std::unique_ptr<Experiment> build(const Config& config, const Config& given, const Source& source) {
  try {
    return build_experiment(config, Start::Untrained);
  } catch (const ConfigError& error) {
    if (!source.config || !std::string_view(error.what()).starts_with(source.path + ":")) throw;
    for (const char* section : {"model", "data", "loss", "optimizer"}) {
      const Config taken = given.get(section);
      if (taken.is_null()) continue;
      throw ConfigError(
          fmt::format("{}: with this in the place of the run's the model does not "
                      "fit: {}",
                      taken.where(), error.what()));
    }
    throw;
  } catch (const CheckpointError& error) {
    const std::string_view problem = error.what();
    const Config model = given.get("model");
    if (model.is_null() || problem.find("of another model") == std::string_view::npos) throw;
    throw CheckpointError(fmt::format("{}; the model is that of {}", problem, model.where()));
  }
}

// Every algorithm prunes in one shot.
std::vector<OneShotPruning*> require_one_shot(const Experiment& e) {
  const Config section = e.config.get("sparsity");
  const auto refuse = [](const Config& entry, std::string_view type) {
    entry.error(
        fmt::format("prune takes magnitude, wanda, sparsegpt or admm, or a list of them, "
                    "found '{}'; train with it instead",
                    type));
  };
  std::vector<OneShotPruning*> all = one_shot_parts(*e.sparsity);
  const std::vector<SparsityAlgorithm*>& parts = e.sparsity->parts();
  if (parts.empty() ? all.empty() : !section.is_list()) refuse(section, e.sparsity->type());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (one_shot_parts(*parts[i]).empty()) refuse(section.items()[i], parts[i]->type());
  }
  return all;
}

// As `lacuna eval` has it of a checkpoint with this state; the test split is the one that counts,
// or the validation split where there is no test split. Null without both.
Config evaluation(const Experiment& e) {
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

// JSON has no infinity, which the error of a layer that gave nothing may be.
Config finite(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Config(*value) : Config();
}

Config report_of(const Source& source, const Experiment& e,
                 const std::vector<OneShotPruning*>& algorithms) {
  Config rows = Config::list(), messages = Config::list();
  const std::vector<std::string> frozen = e.sparsity->frozen_choices(e.model->parameters());
  if (!frozen.empty()) {
    messages.push_back(fmt::format(
        "not pruned, because they are frozen: {}; let them train (`model.frozen`, `trainable`), or "
        "leave them out of param_filter",
        join(frozen, ", ")));
  }
  for (const OneShotPruning* one : algorithms) {
    for (const MaskUpdate& update : one->pruned()) {
      rows.push_back(Config::map({{"parameter", update.parameter},
                                  {"method", std::string(one->type())},
                                  {"sparsity", update.actual_sparsity},
                                  {"relative_error", finite(update.relative_error)}}));
      for (const std::string& message : update.messages) messages.push_back(message);
    }
  }
  return Config::map({{"checkpoint", source.path},
                      {"step", source.checkpoint.step},
                      {"rows", rows},
                      {"messages", messages},
                      {"numel", e.numel()},
                      {"nnz", e.nnz()}});
}

std::string table(const Config& report) {
  size_t width = 9;
  for (const Config& row : report.at("rows").items()) {
    width = std::max(width, row.required<std::string>("parameter").size());
  }
  std::string text = fmt::format("{:<{}}  {:<9} {:>8} {:>14}\n", "parameter", width, "method",
                                 "sparsity", "relative error");
  for (const Config& row : report.at("rows").items()) {
    const Config error = row.get("relative_error");  // null: infinite
    text +=
        fmt::format("{:<{}}  {:<9} {:>8.4f} {:>14}\n", row.required<std::string>("parameter"),
                    width, row.required<std::string>("method"), row.required<double>("sparsity"),
                    error.is_null() ? "inf" : fmt::format("{:.4g}", error.as<double>()));
  }
  for (const char* when : {"before", "after"}) {
    if (!report.has(when)) continue;
    for (const Config& split : report.at(when).at("splits").items()) {
      text += fmt::format("{:<7} {})\n", when, describe_evaluation(split));
    }
  }
  return text;
}

// A run at step 0, which `lacuna train --resume` trains.
Checkpoint first_checkpoint(const Experiment& e) {
  Checkpoint checkpoint{.state = e.state_dict(), .config_yaml = e.config.to_yaml()};
  RunState state;
  state.stopping = EarlyStopping(e.train.early_stopping);
  checkpoint.state.merge("trainer", state.state_dict());
  return checkpoint;
}

void fill_run(const RunFolder& folder, const Experiment& e, const std::string& source,
              const Config& report, const PrunedInt8* int8) {
  log_to_file(folder.log_path());
  log_info_to_file(
      fmt::format("pruned {}: {} of {} parameters are nonzeros", source, e.nnz(), e.numel()));
  for (const std::string& note : e.notes) log_info_to_file("init_from: " + note);
  log_info_to_file("\n" + table(report));
  for (const Config& message : report.at("messages").items()) log_warning(message.text());
  Checkpoint checkpoint = first_checkpoint(e);
  if (int8 != nullptr) {
    checkpoint.state = int8->state;
    write_file_atomically(folder.path() + "/quantize.json", json_text(int8->report));
  }
  folder.save_checkpoint(checkpoint, e.train.checkpoint.keep_last);
  write_file_atomically(folder.path() + "/prune.json", json_text(report));
}

// It is there whole or not at all.
void write_run(const std::string& path, const Experiment& e, const std::string& source,
               const Config& report, const PrunedInt8* int8) {
  FolderReplacement whole(path);
  const RunFolder folder = RunFolder::create(whole.temporary_path(), e.config.to_yaml());
  try {
    fill_run(folder, e, source, report, int8);
    RunFolder::require_unused(path);
    whole.commit();
    stop_logging_to_file();
  } catch (...) {
    stop_logging_to_file();  // which goes; the error is told on the console
    throw;
  }
}

}  // namespace

PrunedRun prune_run(const PruneRequest& request) {
  if (request.run_dir.empty()) throw ConfigError("the run folder's name is empty");
  RunFolder::require_unused(request.run_dir);
  const Source source = read_source(request.checkpoint, request.last, request.tell);
  Config given = given_configuration(request);
  take_sections(given, source, request.overrides);
  apply_prune_options(given, request);
  Config config = merged_config(source, given, request.overrides);
  refuse_own_folder(given, request);
  config.set("run_dir", request.run_dir);
  report_moved_split(source, config);
  start_from(config, given, source.path);
  make_paths_absolute(config);
  apply_process_options(config);
  const auto e = build(config, given, source);
  if (source.config && given.get("model").is_null()) {
    const auto format = InputFormat::from_state(source.checkpoint.state.below("data"));
    require_same_classes(e->data.train->class_names(), format.class_names);
  }
  report_changed_data(source, given, *e);
  const std::vector<OneShotPruning*> algorithms = require_one_shot(*e);
  report_choice(request, e->config);
  if (e->average != nullptr && source.config) {  // what is evaluated is what is pruned
    naming_file(source.path, [&] {
      load_average(source.checkpoint.state.below("ema"), *e->model, e->model->buffers());
    });
  }
  const Config before = evaluation(*e);
  const bool quantizes = !given.get("quantize").is_null();
  if (quantizes) prune_to_grids(*e, algorithms);
  for (OneShotPruning* one : algorithms) one->prune();
  e->write_layouts();
  Config report = report_of(source, *e, algorithms);
  report.set("before", before);
  report.set("after", evaluation(*e));
  std::string text = table(report);
  std::optional<PrunedInt8> int8;
  if (quantizes) {
    int8 = quantize_pruned(*e, algorithms);
    int8->report.set("checkpoint", source.path);
    int8->report.set("step", source.checkpoint.step);
    report.set("quantized", int8->report);
    text += quantize_report_text(int8->report);
  }
  write_run(request.run_dir, *e, source.path, report, int8 ? &*int8 : nullptr);
  return {.report = report, .text = text};
}

}  // namespace lacuna
