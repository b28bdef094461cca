// A trained model in int8, in a folder that `eval`, `predict` and `generate` run.
#include "lacuna/framework/program/actions/quantize_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/program/output/evaluation_report.hpp"
#include "lacuna/framework/program/output/quantize_report.hpp"
#include "lacuna/framework/program/settings/checkpoint_choice.hpp"
#include "lacuna/framework/program/settings/config_changes.hpp"
#include "lacuna/framework/program/settings/data_paths.hpp"
#include "lacuna/framework/quantize/quantize_model.hpp"
#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/train/calibration_data.hpp"
#include "lacuna/framework/train/checks/ignored_labels.hpp"
#include "lacuna/framework/train/checks/run_origins.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/parts/float32_model.hpp"
#include "lacuna/framework/train/runs/run_folder.h"

namespace lacuna {
namespace {

// The run that is quantized, and what it is evaluated on.
struct OpenedRun {
  std::string path;
  Checkpoint checkpoint;
  Config config;
  InputFormat format = {};
  DataSplits data = {};
  LossFunction loss = {};
  TrainOptions train = {};

  std::unique_ptr<Sequential> float32_model() const {
    std::unique_ptr<Sequential> made;
    naming_file(path, [&] {
      made = rebuild_float32_model(config, checkpoint.state, format.example_shape);
    });
    return made;
  }
  Config evaluation(bool in_int8) const {
    const auto made = float32_model();
    if (in_int8) run_in_int8(*made, checkpoint.state.below("quantized"));
    return precision_result(evaluate_splits(*made, loss, data, train.eval_batch_size), *made);
  }
};

// The section, by the file, the run's own or --set alone. Everything else is the run's.
void take_section(const QuantizeRequest& request, Config& config) {
  Config given = Config::map();
  if (!request.config_path.empty() || !request.config.is_null()) {
    given = request.config_path.empty() ? request.config.clone() : load_yaml(request.config_path);
    if (!given.is_map() || !given.has("quantize")) {
      given.error(
          "there is no `quantize` section that says how; give quantize: {} for the "
          "defaults (docs/guides/quantization.md)");
    }
    for (const auto& [key, value] : given.entries()) {
      if (key == "quantize") continue;
      value.error(
          "quantize reads the section `quantize` alone; data, model and the rest are the "
          "run's");
    }
  }
  if (!given.has("quantize")) {
    given.set("quantize", config.has("quantize") ? config.get("quantize").clone() : Config::map());
  }
  for (const std::string& assignment : request.overrides) {
    if (!assignment.starts_with("quantize.") && !assignment.starts_with("quantize=")) {
      throw ConfigError("--set " + assignment + ": quantize takes keys of `quantize` alone");
    }
  }
  apply_overrides(given, request.overrides);
  config.set("quantize", given.at("quantize"));
}

void load_run_data(OpenedRun& run) {
  run.format = InputFormat::from_state(run.checkpoint.state.below("data"));
  Config config = run.config.clone();
  keep_normalization(config, run.format);
  run.data = load_data(config.at("data"), run.train.seed);
  if (run.data.train->example_shape() != run.format.example_shape) {
    throw DataError("the data has examples of shape " +
                    run.data.train->example_shape().to_string() +
                    ", and the model was trained on " + run.format.example_shape.to_string());
  }
  require_same_classes(run.data.train->class_names(), run.format.class_names);
  const RunOrigins origins = RunOrigins::from_state(run.checkpoint.state);
  const std::string change = split_change(origins.data, run.data.hashes, Split::Train);
  if (!change.empty()) log_warning("changed since '" + run.path + "' was saved: " + change);
}

OpenedRun open_run(const QuantizeRequest& request) {
  const Tell tell = request.tell ? request.tell : [](const std::string&) {};
  const CheckpointFile file = choose_checkpoint(request.checkpoint, request.last, tell);
  OpenedRun run{.path = file.path(), .checkpoint = file.read(), .config = {}};
  run.config = saved_config(run.checkpoint, run.path);
  if (!run.checkpoint.state.below("quantized").empty()) {
    throw CheckpointError("'" + run.path +
                          "' is quantized already: quantize the run that it was made from");
  }
  take_section(request, run.config);
  if (request.threads) apply_overrides(run.config, {"train.threads=" + *request.threads});
  run.train = TrainOptions::from_config(run.config.get("train"));
  if (run.train.threads > 0) set_num_threads(run.train.threads);
  return run;
}

void read_loss(OpenedRun& run, const Module& model) {
  run.loss = LossFunction::from_config(run.config, *run.data.train);
  run.loss.take_outputs(model.output_shape(run.format.example_shape));
  run.loss.set_target_scale(run.data.target_std);
  if (const auto label = run.loss.ignored_label()) {
    run.data = with_ignored_label(run.data, *label);
  }
}

CalibrationRun calibration_of(const OpenedRun& run, const QuantizeOptions& options) {
  if (!options.needs_examples()) return {};
  CalibrationOptions wanted = options.calibration;
  const CalibrationData data =
      calibration_data(run.data.train, run.train.seed, run.train.batch_size);
  const int64_t fewest = QuantizeOptions::kFewestExamples;
  if (data.examples < std::max(wanted.examples.value_or(fewest), fewest)) {
    run.config.get("quantize")
        .error(fmt::format("calibration needs {} examples, and the training data has {}",
                           std::max(wanted.examples.value_or(fewest), fewest), data.examples));
  }
  wanted.examples =
      wanted.examples.value_or(std::min(data.examples, CalibrationOptions::kDefaultExamples));
  return [data, wanted](Module& model) { data.run(model, wanted); };
}

// Model, inputs and origins stay; what only training needs goes.
void keep_model_state(StateDict& state) {
  StateDict kept;
  for (const char* part : {"model", "ema", "data", "origins", "quantized"}) {
    const StateDict of_part = state.below(part);
    if (!of_part.empty()) kept.merge(part, of_part);
  }
  state = std::move(kept);
}

std::string report_text(const Config& report) {
  std::string text = quantized_table(report.at("layers"));
  for (const char* name : {"float32", "int8"}) text += precision_lines(name, report.at(name));
  return text;
}

void write_quantized_run(const QuantizeRequest& request, const OpenedRun& run,
                         const Config& report) {
  FolderReplacement whole(request.run_dir);
  Config config = run.config.clone();
  config.set("run_dir", request.run_dir);
  const RunFolder folder = RunFolder::create(whole.temporary_path(), config.to_yaml());
  Checkpoint checkpoint = run.checkpoint;
  checkpoint.config_yaml = config.to_yaml();
  keep_model_state(checkpoint.state);
  folder.save_checkpoint(checkpoint, 1);
  write_file_atomically(folder.path() + "/quantize.json", json_text(report));
  RunFolder::require_unused(request.run_dir);
  whole.commit();
}

}  // namespace

QuantizedRun quantize_run(const QuantizeRequest& request) {
  if (request.run_dir.empty()) throw ConfigError("the run folder's name is empty");
  RunFolder::require_unused(request.run_dir);
  OpenedRun run = open_run(request);
  const Config section = run.config.get("quantize");
  const QuantizeOptions options = QuantizeOptions::from_config(section);
  naming_file(run.path, [&] { load_run_data(run); });
  const auto model = run.float32_model();
  read_loss(run, *model);
  const auto candidates = at_position(section, [&] { return int8_candidates(*model, options); });
  const Config products = planned_products(*model, options);
  for (const Config& row : products.items()) {
    if (row.has("advice")) {
      log_warning(row.required<std::string>("parameter") + ": " +
                  row.required<std::string>("advice"));
    }
  }
  const QuantizedModel quantized =
      quantize_model(*model, candidates, options, calibration_of(run, options));
  for (const std::string& message : quantized.messages) log_warning(message);
  run.checkpoint.state.merge("quantized", state_of(quantized.layers));
  Config messages = Config::list();
  for (const std::string& message : quantized.messages) messages.push_back(message);
  int64_t numel = 0, nnz = 0;
  for (const ParameterPtr& parameter : model->parameters()) {
    numel += parameter->numel();
    nnz += parameter->pattern()->nnz();
  }
  const Config report = Config::map({{"checkpoint", run.path},
                                     {"step", run.checkpoint.step},
                                     {"algorithm", to_string(options.algorithm)},
                                     {"layers", quantized_rows(quantized.layers)},
                                     {"products", products},
                                     {"float32", run.evaluation(false)},
                                     {"int8", run.evaluation(true)},
                                     {"messages", messages},
                                     {"numel", numel},
                                     {"nnz", nnz}});
  write_quantized_run(request, run, report);
  return {.report = report, .text = report_text(report)};
}

}  // namespace lacuna
