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
#include "lacuna/framework/nn/other_model_error.hpp"
#include "lacuna/framework/program/actions/prune_options.hpp"
#include "lacuna/framework/program/actions/prune_quantized.hpp"
#include "lacuna/framework/program/actions/quantized_parts.hpp"
#include "lacuna/framework/program/actions/read_given.hpp"
#include "lacuna/framework/program/actions/source_run.hpp"
#include "lacuna/framework/program/output/evaluation_report.hpp"
#include "lacuna/framework/program/settings/config_changes.hpp"
#include "lacuna/framework/program/settings/data_paths.hpp"
#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/runs/run_folder.h"
#include "lacuna/sparsity/one_shot_pruning.h"

namespace lacuna {
namespace {

// The run's configuration with the sections of the one that was given in their place.
Config merged_config(const SourceRun& source, const Config& given,
                     const std::vector<std::string>& assignments) {
  if (!given.is_map()) given.fail("a map with `sparsity`");
  if (!given.has("sparsity")) {
    for (const std::string& assignment : assignments) {
      if (!assignment.starts_with("sparsity=")) continue;
      throw ConfigError("--set " + assignment +
                        ": this removes the `sparsity` section, which selects the method; leave it "
                        "out, or give sparsity={algorithm: wanda, sparsity: 0.5}");
    }
    given.error(
        "there is no `sparsity` section; give one with magnitude, wanda, sparsegpt or admm "
        "(docs/guides/pruning.md)");
  }
  return merge_sections(source, given, "prune");
}

// What is wrong with the run only because a given section replaced the run's is reported at the
// given section.
std::unique_ptr<Experiment> build(const Config& config, const Config& given,
                                  const SourceRun& source) {
  try {
    return build_experiment(config, Start::Untrained);
  } catch (const ConfigError& error) {
    if (!source.config || !std::string_view(error.what()).starts_with(source.path + ":")) throw;
    for (const char* section : {"model", "data", "loss", "optimizer"}) {
      const Config taken = given.get(section);
      if (taken.is_null()) continue;
      throw ConfigError(
          fmt::format("{}: with this instead of the run's value, the model does not fit: {}",
                      taken.where(), error.what()));
    }
    throw;
  } catch (const OtherModelError& error) {
    const Config model = given.get("model");
    if (model.is_null()) throw;
    throw CheckpointError(fmt::format("{}; the model is that of {}", error.what(), model.where()));
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

// Errors of weights and of calibration examples name the section.
void prune_all(const Config& section, const std::vector<OneShotPruning*>& algorithms) {
  try {
    at_position(section, [&] {
      for (OneShotPruning* one : algorithms) one->prune();
    });
  } catch (const DataError& error) {
    throw DataError(section.where() + ": " + error.what());
  }
}

// JSON has no infinity, which the error of a layer with zero outputs may be.
Config finite(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Config(*value) : Config();
}

Config report_of(const SourceRun& source, const Experiment& e,
                 const std::vector<OneShotPruning*>& algorithms) {
  Config rows = Config::list(), messages = Config::list();
  const std::vector<std::string> frozen = e.sparsity->frozen_choices(e.model->parameters());
  if (!frozen.empty()) {
    messages.push_back(
        fmt::format("not pruned, because they are frozen: {}; unfreeze them (`model.frozen`, "
                    "`trainable`), or exclude them with param_filter",
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

void fill_run(const RunFolder& folder, const Experiment& e, const std::string& source,
              const Config& report, const PrunedInt8* int8) {
  log_to_file(folder.log_path());
  log_info_to_file(
      fmt::format("pruned {}: {} of {} parameters are nonzero", source, e.nnz(), e.numel()));
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

}  // namespace

PrunedRun prune_run(const PruneRequest& request) {
  if (request.run_dir.empty()) throw ConfigError("the run folder's name is empty");
  RunFolder::require_unused(request.run_dir);
  const SourceRun source = read_source_run(request.checkpoint, request.last, request.report_line);
  Config given = given_configuration(request);
  take_sections(given, source, request.overrides, {"train", "sparsity"});
  apply_prune_options(given, request);
  Config config = merged_config(source, given, request.overrides);
  refuse_own_folder(given, request.run_dir, request.overrides);
  config.set("run_dir", request.run_dir);
  report_moved_split(source, config);
  start_from_source(config, given, source.path, "prune");
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
  const Config before = evaluation_of(*e);
  const bool quantizes = !given.get("quantize").is_null();
  if (quantizes) prune_to_grids(*e, algorithms);
  prune_all(e->config.get("sparsity"), algorithms);
  e->write_layouts();
  Config report = report_of(source, *e, algorithms);
  report.set("before", before);
  report.set("after", evaluation_of(*e));
  std::string text = table(report);
  std::optional<PrunedInt8> int8;
  if (quantizes) {
    int8 = quantize_pruned(*e, algorithms);
    int8->report.set("checkpoint", source.path);
    int8->report.set("step", source.checkpoint.step);
    report.set("quantized", int8->report);
    text += quantize_report_text(int8->report);
  }
  write_new_run(request.run_dir, e->config, [&](const RunFolder& folder) {
    fill_run(folder, *e, source.path, report, int8 ? &*int8 : nullptr);
  });
  return {.report = report, .text = text};
}

}  // namespace lacuna
