// A trained model in int8, in a folder that `eval`, `predict` and `generate` run.
#include "lacuna/framework/program/actions/quantize_run.h"

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/inference/fold_batch_norm.hpp"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/storage/file_system.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/program/actions/quantized_parts.hpp"
#include "lacuna/framework/program/actions/source_run.hpp"
#include "lacuna/framework/program/output/evaluation_report.hpp"
#include "lacuna/framework/program/output/quantize_report.hpp"
#include "lacuna/framework/program/settings/checkpoint_choice.hpp"
#include "lacuna/framework/program/settings/config_changes.hpp"
#include "lacuna/framework/program/settings/data_paths.hpp"
#include "lacuna/framework/quantize/float32_values.hpp"
#include "lacuna/framework/quantize/quantization_aware.hpp"
#include "lacuna/framework/quantize/quantize_model.hpp"
#include "lacuna/framework/quantize/smooth.hpp"
#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/train/checks/ignored_labels.hpp"
#include "lacuna/framework/train/checks/run_origins.hpp"
#include "lacuna/framework/train/input_format.h"
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
    return measured_precision(*made, loss, data, train);
  }
};

// Nobody means to train on in the folder that a quantized run is to be in.
void require_new_folder(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path + "/config.yaml", error)) {
    throw StateError("the run folder '" + path +
                     "' holds a run already; choose another folder with --run-dir");
  }
  RunFolder::require_unused(path);
}

// A run's section states all values, also those that mean nothing with another choice of --set.
void leave_out_values_of_others(Config section, const std::vector<std::string>& overrides) {
  Config all = Config::map({{"quantize", section.clone()}});
  apply_overrides(all, overrides);
  const Config after = all.peek("quantize");
  if (!after.is_map()) return;  // which is refused where it is read
  const auto chosen = [&](const std::string& key) { return after.peek(key).text(); };
  const auto sets = [&](const std::string& key) {
    return std::ranges::any_of(overrides, [&](const std::string& assignment) {
      return assignment.starts_with("quantize." + key + "=");
    });
  };
  const std::string when = chosen("activations.when");
  Config activations = section.get("activations");
  if (activations.is_map() && (sets("activations.when") || sets("activations.observer"))) {
    if (sets("activations.when")) activations.erase("observer");
    activations.erase("percentile");
    if (when == "none") activations.erase("bits");
  }
  if (sets("algorithm")) {
    for (const char* key : {"start_epoch", "freeze_after", "scales"}) section.erase(key);
  }
  if (Config calibration = section.get("calibration"); calibration.is_map()) {
    for (const auto& [given, other] : {std::pair{"batches", "examples"}, {"examples", "batches"}}) {
      const std::string key = std::string("calibration.") + given;
      if (sets(key) && !after.peek(key).is_null()) calibration.erase(other);
    }
  }
  if (when == "none") section.erase("smooth");
  const std::string algorithm = chosen("algorithm");
  const Config smooth = after.peek("smooth");
  const bool smooths = when != "none" && smooth.is_number() && smooth.as<double>() > 0.0;
  if ((when == "dynamic" || when == "none") && !smooths &&
      (algorithm == "nearest" || algorithm == "qat")) {
    section.erase("calibration");
  }
}

// The section: of the file, of the run, or only of --set. Everything else is the run's.
void take_section(const QuantizeRequest& request, Config& config) {
  Config given = Config::map();
  if (!request.config_path.empty() || !request.config.is_null()) {
    given = request.config_path.empty() ? request.config.clone() : load_yaml(request.config_path);
    if (!given.is_map() || !given.has("quantize")) {
      given.error(
          "there is no `quantize` section; give quantize: {} for the defaults "
          "(docs/guides/quantization.md)");
    }
    for (const auto& [key, value] : given.entries()) {
      if (key == "quantize") continue;
      value.error(
          "quantize only reads the section `quantize`; data, model and the rest come from the run");
    }
  }
  for (const std::string& assignment : request.overrides) {
    if (!assignment.starts_with("quantize.") && !assignment.starts_with("quantize=")) {
      throw ConfigError("--set " + assignment + ": quantize only accepts keys of `quantize`");
    }
  }
  const bool is_default = !given.has("quantize") && !config.has("quantize");
  if (!given.has("quantize")) {
    given.set("quantize", config.has("quantize") ? config.get("quantize").clone() : Config::map());
    if (given.at("quantize").is_map()) {
      leave_out_values_of_others(given.get("quantize"), request.overrides);
    }
  }
  apply_overrides(given, request.overrides);
  config.set("quantize", given.at("quantize"));
  if (is_default) config.get("quantize").set_position({});  // no file has it
}

void load_run_data(OpenedRun& run) {
  run.format = InputFormat::from_state(run.checkpoint.state.below("data"));
  Config config = run.config.clone();
  keep_normalization(config, run.format);
  run.data = load_data(config.at("data"), run.train.seed);
  if (run.data.train->example_shape() != run.format.example_shape) {
    throw DataError("the data has examples of shape " +
                    run.data.train->example_shape().to_string() +
                    ", and the model was trained on " + run.format.example_shape.to_string() +
                    "; calibration needs the run's own data: restore the files that its "
                    "configuration names");
  }
  require_same_classes(run.data.train->class_names(), run.format.class_names);
  const RunOrigins origins = RunOrigins::from_state(run.checkpoint.state);
  const std::string change = split_change(origins.data, run.data.hashes, Split::Train);
  if (!change.empty()) log_warning("changed since '" + run.path + "' was saved: " + change);
}

OpenedRun open_run(const QuantizeRequest& request) {
  const ReportLine report_line =
      request.report_line ? request.report_line : [](const std::string&) {};
  const CheckpointFile file = choose_checkpoint(request.checkpoint, request.last, report_line);
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

// --only int8: the weights that were quantized are there once. The averages are the weights then,
// which nothing trains on.
void drop_float32(OpenedRun& run) {
  const auto model = restore_model(run.config, run.checkpoint.state, run.format.example_shape);
  replace_model_state(run.checkpoint.state, model->state_dict());
  replace_model_state(
      run.checkpoint.state,
      without_float32(run.checkpoint.state, batch_norm_factors(*model, run.format.example_shape)));
  if (run.config.get("train").is_map()) run.config.get("train").erase("ema");
}

// Moves ranges of activations into weights, of the checkpoint, too. The averages are the weights
// then.
std::vector<std::string> smooth(OpenedRun& run, const QuantizeOptions& options) {
  if (options.smooth == 0.0) return {};
  const Config section = run.config.get("quantize");
  const auto model = restore_model(run.config, run.checkpoint.state, run.format.example_shape);
  std::vector<std::string> messages;
  at_position(section, [&] {
    messages = smooth_model(*model, int8_candidates(*model, options), options.smooth,
                            quantize_calibration(section, options, run.data.train, run.train));
  });
  replace_model_state(run.checkpoint.state, model->state_dict());
  if (run.config.get("train").is_map()) run.config.get("train").erase("ema");
  return messages;
}

// The grids of a run that was trained with qat.
std::vector<KnownGrid> known_grids(const OpenedRun& run, const QuantizeOptions& options) {
  if (options.algorithm != QuantizeOptions::Algorithm::Qat) return {};
  const StateDict state = run.checkpoint.state.below("qat");
  if (state.empty()) {
    throw ConfigError(
        "quantize.algorithm: qat needs a run that has trained with it, and '" + run.path +
        "' has not: train with it first (lacuna train CONFIG --init-from RUN), then quantize that "
        "run (with --last if its best checkpoint is from before qat began); or give gptq");
  }
  std::vector<KnownGrid> known;
  naming_file(run.path, [&] {
    known = trained_grids(
        state, *restore_model(run.config, run.checkpoint.state, run.format.example_shape));
  });
  return known;
}

void write_quantized_run(const QuantizeRequest& request, const OpenedRun& run,
                         const Config& report) {
  Config config = run.config.clone();
  config.set("run_dir", request.run_dir);
  Checkpoint checkpoint = run.checkpoint;
  checkpoint.config_yaml = config.to_yaml();
  keep_model_state(checkpoint.state);
  write_new_run(request.run_dir, config, [&](const RunFolder& folder) {
    folder.save_checkpoint(checkpoint, 1);
    write_file_atomically(folder.path() + "/quantize.json", json_text(report));
  });
}

}  // namespace

QuantizedRun quantize_run(const QuantizeRequest& request) {
  if (request.run_dir.empty()) throw ConfigError("the run folder's name is empty");
  require_new_folder(request.run_dir);
  if (!request.only.empty() && request.only != "int8") {
    throw ConfigError("--only takes int8, found '" + request.only + "'");
  }
  OpenedRun run = open_run(request);
  const Config section = run.config.get("quantize");
  const QuantizeOptions options = QuantizeOptions::from_config(section);
  naming_file(run.path, [&] { load_run_data(run); });
  read_loss(run, *run.float32_model());
  const std::vector<std::string> smoothed = smooth(run, options);
  const auto model = run.float32_model();
  const Config filter = section.get("param_filter");
  const auto candidates = at_position(filter.is_null() ? section : filter,
                                      [&] { return int8_candidates(*model, options); });
  const Config products = planned_products(*model, options);
  for (const Config& row : products.items()) {
    if (row.has("advice")) {
      log_warning(row.required<std::string>("parameter") + ": " +
                  row.required<std::string>("advice"));
    }
  }
  QuantizedModel quantized = quantize_model(
      *model, candidates, options,
      quantize_calibration(section, options, run.data.train, run.train), known_grids(run, options));
  quantized.messages.insert(quantized.messages.begin(), smoothed.begin(), smoothed.end());
  for (const std::string& message : quantized.messages) log_warning(message);
  run.checkpoint.state.merge("quantized", state_of(quantized.layers));
  Config report = quantize_report(*model, options, quantized, products, run.evaluation(false),
                                  run.evaluation(true));
  report.set("checkpoint", run.path);
  report.set("step", run.checkpoint.step);
  if (request.only == "int8") drop_float32(run);
  write_quantized_run(request, run, report);
  return {.report = report, .text = quantize_report_text(report)};
}

}  // namespace lacuna
