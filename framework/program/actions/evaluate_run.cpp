#include "lacuna/framework/program/actions/evaluate_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/shell_word.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/program/actions/quantized_parts.hpp"
#include "lacuna/framework/program/output/evaluation_report.hpp"
#include "lacuna/framework/program/output/quantize_report.hpp"
#include "lacuna/framework/program/settings/checkpoint_choice.hpp"
#include "lacuna/framework/program/settings/config_changes.hpp"
#include "lacuna/framework/program/settings/keys.hpp"
#include "lacuna/framework/quantize/float32_values.hpp"
#include "lacuna/framework/train/checks/column_checks.hpp"
#include "lacuna/framework/train/checks/held_out_changes.hpp"
#include "lacuna/framework/train/checks/ignored_labels.hpp"
#include "lacuna/framework/train/checks/run_origins.hpp"
#include "lacuna/framework/train/checks/vocabulary_checks.hpp"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/known_data.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/parts/float32_model.hpp"
#include "lacuna/framework/train/runs/run_folder.h"

namespace lacuna {
namespace {

// The model and its training are those of the checkpoint; the data that it is evaluated on, and the
// way, may be others.
void apply_eval_overrides(Config& config, const std::vector<std::string>& assignments) {
  for (const std::string& assignment : assignments) {
    const std::string path = assignment.substr(0, assignment.find('=')),
                      section = path.substr(0, path.find('.'));
    const bool is_assignment = path.size() < assignment.size() && !path.empty();
    if (is_assignment && section != "data" && section != "train" && section != "loss") {
      throw ConfigError("--set " + assignment + ": eval takes the checkpoint's " + section +
                        "; only data, loss and train may be changed");
    }
    write_out_short_form(config, assignment);
    apply_override(config, assignment);
    if (path.starts_with("train.ema") && !config.at("train").get("ema").is_null()) {
      throw ConfigError("--set " + assignment +
                        ": the average comes from the checkpoint and cannot be changed; "
                        "train.ema=null evaluates the weights themselves");
    }
    if (path != "train" && !find_key(path).in_eval) {
      log_warning("--set " + assignment + " changes nothing in an evaluation");
    }
  }
  for (const KeyTraits& key : config_keys()) {  // sections that are not looked at
    if (!key.in_eval && key.path.find('.') == std::string::npos) config.get(key.path).mark_read();
  }
}

// Another split would have examples in it that the model was trained on.
void require_same_split(const Config& run, const Config& now,
                        const std::vector<std::string>& assignments) {
  const std::string key = changed_split_key(run, now);
  if (key.empty()) return;
  std::string given = key;
  for (const std::string& assignment : assignments) {
    if (key.starts_with(assignment.substr(0, assignment.find('=')))) given = "--set " + assignment;
  }
  const Config value = run.peek(key);
  throw ConfigError(
      fmt::format("{}: the run held out its validation split with {} = {}; another value would put "
                  "training examples into it. Keep the key as it is (or data.validation=0 for no "
                  "split), and give other examples as data.test",
                  given, key, value.is_null() ? "nothing" : value.text()));
}

// The same if the files are others: in most cases, their number shows it.
void report_other_examples(const Config& run, const Dataset& train, const StateDict& state) {
  const Config validation = run.peek("data.validation");
  const bool is_held_out = validation.is_number() && validation.as<double>() > 0.0;
  if (!is_held_out || !state.contains("loader/dataset_size") || state.contains("origins/data")) {
    return;  // a hash proves more
  }
  const auto before = state.get<int64_t>("loader/dataset_size");
  if (before == train.size()) return;
  log_warning(fmt::format(
      "there are {} training examples next to the validation split, but the run was trained on {}: "
      "the split comes from different data and may contain training examples",
      train.size(), before));
}

// Whether a split is a part of the training data, by a fraction or a number.
bool is_held_out(const Config& config, Split split) {
  const Config value = config.peek(split == Split::Test ? "data.test" : "data.validation");
  return value.is_number() && value.as<double>() > 0.0;
}

// What of the data that is evaluated on is not as it was in training, a line for each split. Splits
// in files of their own are left out where they were given for this evaluation: `is_given`.
std::vector<std::string> changed_splits(const Config& config, const SplitHashes& before,
                                        const DataSplits& data, bool is_given) {
  std::vector<std::string> lines;
  const std::string training = split_change(before, data.hashes, Split::Train);
  for (const Split split : {Split::Validation, Split::Test}) {
    if ((split == Split::Test ? data.test : data.validation) == nullptr) continue;
    std::string change = split_change(before, data.hashes, split);
    if (is_held_out(config, split)) {
      const std::string name = split == Split::Test ? "test" : "validation";
      if (change.empty()) change = training;
      if (change.empty()) continue;
      lines.push_back(change + " (the " + name +
                      " split is a part of that data, and may contain training examples)");
    } else if (!change.empty() && !is_given) {
      lines.push_back(change);
    }
  }
  return lines;
}

// Refuses data that has changed, or warns. Returns the warnings.
std::vector<std::string> judge_changes(const EvaluateOptions& options, const Config& run,
                                       const Config& config, const SplitHashes& before,
                                       const DataSplits& data) {
  const bool is_given = !(run.get("data") == config.get("data"));
  std::vector<std::string> lines = changed_splits(config, before, data, is_given);
  if (lines.empty()) return lines;
  if (!options.data_changed) {
    throw DataError("the data has changed since the run was trained: " + join(lines, "; ") +
                    ". Restore it, or evaluate the present data with --data-changed");
  }
  for (const std::string& line : lines) {
    log_warning("the data has changed since the run was trained: " + line);
  }
  return lines;
}

// A vocabulary that is made from the text changes with the text.
void require_same_vocabulary(const Dataset& data, const InputFormat& format) {
  if (has_same_vocabulary(data, format.tokenizer)) return;
  throw DataError(
      "the data has a different vocabulary than the model was trained with; to evaluate another "
      "text, keep the training data and give the text as data.test");
}

// The data, of which the training files need not be there: what lies in files of its own can be
// evaluated without them.
DataSplits load_splits(const Config& run, const Config& now, uint64_t seed, const KnownData& known,
                       const ReportLine& report_line) {
  const Config data = now.at("data");
  if (replaces_own_test_split(run, now)) {
    DataSplits splits = load_held_out(data, seed, known);
    if (splits.train != nullptr) {
      report_line(
          "only data.test is evaluated: the run's own splits are parts of its training data");
      return splits;
    }
  }
  try {
    return load_data(data, seed);
  } catch (const DataError&) {
    if (has_training_files(data)) throw;
    DataSplits splits = load_held_out(data, seed, known);
    if (splits.train == nullptr) throw;
    report_line("the training data is missing; the splits in files of their own are evaluated");
    return splits;
  }
}

// A quantized model as it is, and as it was.
Config compare_precisions(const Config& splits, Module& in_int8, Module& in_float32,
                          const LossFunction& loss, const DataSplits& data,
                          const TrainOptions& train) {
  const Dataset& examples = data.test != nullptr ? *data.test : *data.validation;
  Config after = precision_result(splits, in_int8);
  Config before =
      precision_result(evaluate_splits(in_float32, loss, data, train.eval_batch_size), in_float32);
  const std::vector<double> rates =
      measure_rates(std::array<Module*, 2>{&in_int8, &in_float32}, examples);
  after.set("examples_per_second", rates[0]);
  before.set("examples_per_second", rates[1]);
  return Config::map({{"int8", after}, {"float32", before}});
}

}  // namespace

RunEvaluation evaluate_run(const std::string& run_or_checkpoint, const EvaluateOptions& options) {
  const ReportLine report_line =
      options.report_line ? options.report_line : [](const std::string&) {};
  const CheckpointFile file = choose_checkpoint(run_or_checkpoint, options.last, report_line);
  const std::string& path = file.path();
  const Checkpoint checkpoint = file.read();
  Config config = saved_config(checkpoint, path);
  InputFormat format;
  RunOrigins origins;
  naming_file(path, [&] {
    format = InputFormat::from_state(checkpoint.state.below("data"));
    origins = RunOrigins::from_state(checkpoint.state);
  });
  keep_normalization(config, format);
  const Config run = config.clone();
  apply_eval_overrides(config, options.overrides);
  require_same_split(run, config, options.overrides);
  const TrainOptions train = TrainOptions::from_config(config.get("train"));
  if (train.threads > 0) set_num_threads(train.threads);
  std::unique_ptr<Sequential> model;
  naming_file(path, [&] { model = rebuild_model(config, checkpoint.state, format.example_shape); });
  DataSplits data =
      load_splits(run, config, train.seed, known_data(config, format, *model), report_line);
  require_same_columns(
      config.peek("data.train").text(),
      {.inputs = format.columns, .label = format.label_column, .categories = format.categories},
      {.inputs = data.columns, .label = data.label_column, .categories = data.categories});
  if (data.train->example_shape() != format.example_shape) {
    throw DataError("the data has examples of shape " + data.train->example_shape().to_string() +
                    ", and the model was trained on " + format.example_shape.to_string());
  }
  require_same_classes(data.train->class_names(), format.class_names);
  require_same_vocabulary(*data.train, format);
  if (data.train != data.test && data.train != data.validation) {
    report_other_examples(config, *data.train, checkpoint.state);
  }
  const std::vector<std::string> changes = judge_changes(options, run, config, origins.data, data);
  for (const char* key : {"loss.class_weights", "loss.pos_weight"}) {
    const Config weights = config.peek(key);
    if (!weights.is_scalar() || weights.text() != "balanced") continue;
    weights.error(
        "only training measures `balanced`; leave it out to use the run's weights, or give a list");
  }
  LossFunction loss = LossFunction::from_config(config, *data.train);
  loss.take_outputs(model->output_shape(format.example_shape));
  loss.set_target_scale(data.target_std);
  if (const auto label = loss.ignored_label()) data = with_ignored_label(data, *label);
  config.require_all_read();

  const Config splits = evaluate_splits(*model, loss, data, train.eval_batch_size);
  if (splits.items().empty()) {
    throw DataError("the data has neither a test nor a validation split to evaluate on");
  }
  if (!checkpoint.state.below("qat").empty()) {
    report_line("the run trains for int8 (qat), and this is its float32 model: `lacuna quantize " +
                shell_word(run_or_checkpoint) + " --run-dir DIR` makes the int8 model");
  }
  if (const std::string note = slow_int8_note(checkpoint.state); !note.empty()) report_line(note);
  Config precisions;
  bool is_dequantized = false;
  if (!checkpoint.state.below("quantized").empty()) {
    if (have_float32_inputs(quantized_layers(checkpoint.state.below("quantized")))) {
      report_line(
          "the run has int8 weights and float32 activations (quantize.activations.when: none): "
          "`int8` takes the time and memory of float32");
    }
    is_dequantized = lacks_float32(checkpoint.state);
    const auto before = rebuild_float32_model(config, checkpoint.state, format.example_shape);
    precisions = compare_precisions(splits, *model, *before, loss, data, train);
  }
  return {.checkpoint = path,
          .step = checkpoint.step,
          .splits = splits,
          .precisions = precisions,
          .is_dequantized = is_dequantized,
          .changes = changes};
}

}  // namespace lacuna
