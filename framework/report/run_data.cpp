#include "lacuna/framework/report/run_data.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/folder_lock.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/report/run_names.hpp"
#include "lacuna/framework/report/run_search.hpp"

namespace lacuna {

namespace fs = std::filesystem;

void Curve::add(double step, double value) {
  steps.push_back(step);
  values.push_back(value);
}

namespace {

constexpr uintmax_t kMostMetricsBytes = uintmax_t{1} << 31;
constexpr size_t kMostLineBytes = size_t{1} << 24;
constexpr const char* kResults[] = {
    "loss", "accuracy", "top5_accuracy", "precision_at_1", "precision_at_3",    "precision_at_5",
    "r2",   "mae",      "rmse",          "perplexity",     "bits_per_character"};

// A number of an event; nothing where it is missing or of another kind.
std::optional<double> number_of(const Config& event, std::string_view key) {
  const Config value = event.get(key);
  if (!value.is_number()) return std::nullopt;
  const auto number = value.as<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

// The number of a step; nothing where it is none.
std::optional<double> step_of(const Config& event, std::string_view key) {
  constexpr double kMost = 9007199254740992.0;  // 2^53
  const auto step = number_of(event, key);
  return step && *step >= 0.0 && *step <= kMost && *step == std::floor(*step) ? step : std::nullopt;
}

void add_value(Curve& curve, const Config& event, std::string_view key) {
  const auto step = step_of(event, "step"), value = number_of(event, key);
  if (step && value) curve.add(*step, *value);
}

class MetricsReader {
 public:
  explicit MetricsReader(RunData& run) : run_(run) {}

  // Returns whether the line is an event.
  bool take(const Config& event) {
    if (!event.is_map() || !step_of(event, "step") || !event.get("split").is_scalar()) {
      return false;
    }
    const std::string split = event.get("split").text();
    if (split == "update") return take_update(event);
    const double step = *number_of(event, "step");
    const auto epoch = number_of(event, "epoch");
    if (epoch && step > 0.0 && *epoch > 0.0) run_.epochs_of_a_step = *epoch / step;
    SplitCurves& curves = run_.splits[split];
    const auto take_value = [&](const char* key) {
      if (number_of(event, key)) add_value(curves[key], event, key);
    };
    std::ranges::for_each(kResults, take_value);
    for (const char* key : {"lr", "examples_per_second"}) take_value(key);
    if (split == "train") take_training(event);
    if (const auto seconds = number_of(event, "seconds"); seconds && split != "train") {
      evaluated_ = {step, *seconds};
    }
    return true;
  }

  // To be called after the last line. A run shorter than `log_every` has times of evaluations only.
  void finish() {
    const auto [step, seconds] = evaluated_;
    if (!run_.step_seconds.empty() || !(step > 0.0) || !(seconds > 0.0)) return;
    run_.step_seconds.add(step, seconds / step);
    run_.seconds.add(step, seconds);
  }

 private:
  LayerData& layer(const std::string& name) {
    const auto [place, is_new] = places_.emplace(name, run_.layers.size());
    if (is_new) run_.layers.emplace_back().name = name;
    return run_.layers[place->second];
  }

  static void add_density(Curve& curve, const Config& fractions, const char* key, double step) {
    if (const auto zeros = number_of(fractions, key)) curve.add(step, 1.0 - *zeros);
  }

  void take_training(const Config& event) {
    const double step = *number_of(event, "step");
    if (const auto seconds = number_of(event, "seconds")) {
      if (step > last_step_ && *seconds >= last_seconds_) {
        run_.step_seconds.add(step, (*seconds - last_seconds_) / (step - last_step_));
      }
      run_.seconds.add(step, *seconds);
      last_step_ = step, last_seconds_ = *seconds;
    }
    if (!event.get("sparsity").is_map()) return;
    for (const auto& [name, fractions] : event.get("sparsity").entries()) {
      if (!fractions.is_map()) continue;
      add_density(layer(name).target, fractions, "target", step);
      add_density(layer(name).actual, fractions, "actual", step);
    }
  }

  bool take_update(const Config& event) {
    if (!event.get("parameter").is_scalar()) return false;
    LayerData& to = layer(event.get("parameter").text());
    add_value(to.dropped, event, "dropped");
    add_value(to.grown, event, "grown");
    add_value(to.churn, event, "churn");
    add_value(to.ever_active, event, "ever_active");
    add_value(to.dead_rows, event, "dead_rows");
    add_value(to.dead_columns, event, "dead_columns");
    add_value(to.nnz, event, "nnz");
    return true;
  }

  RunData& run_;
  std::map<std::string, size_t> places_;  // of layers, by name
  double last_step_ = 0.0, last_seconds_ = 0.0;
  std::pair<double, double> evaluated_ = {0.0, 0.0};  // step and seconds of the last evaluation
};

// A last line without its end is being written, or was when the process was killed.
void read_metrics(const std::string& path, RunData& run) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    run.remarks.emplace_back("there is no metrics.jsonl");
    return;
  }
  if (fs::file_size(path, error) > kMostMetricsBytes) {
    throw DataError("'" + path + "' has more than 2 GiB");
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw DataError("cannot read '" + path + "'");
  MetricsReader reader(run);
  for (std::string line; std::getline(stream, line);) {
    if (line.empty()) continue;
    const auto event = line.size() > kMostLineBytes ? std::nullopt : parse_json(line);
    const bool is_good = event && reader.take(*event);
    if (!is_good && !(stream.eof() && !event)) ++run.damaged_lines;
  }
  reader.finish();
  if (run.damaged_lines > 0) {
    run.remarks.emplace_back(fmt::format(
        "{} line{} of metrics.jsonl could not be read and {} left out", run.damaged_lines,
        run.damaged_lines == 1 ? "" : "s", run.damaged_lines == 1 ? "is" : "are"));
  }
}

// Returns whether the curve had no value there.
bool add_missing(Curve& curve, double step, double value) {
  const auto place = std::ranges::lower_bound(curve.steps, step) - curve.steps.begin();
  if (std::ranges::find(curve.steps, step) != curve.steps.end()) return false;
  curve.steps.insert(curve.steps.begin() + place, step);
  curve.values.insert(curve.values.begin() + place, value);
  return true;
}

// Events may be lost: the last and the best result of a run that has ended are in its summary, too.
void add_results_of_summary(RunData& run) {
  if (!run.summary.is_map()) return;
  bool lacks_events = false;
  for (const char* split : {"test", "validation"}) {
    for (const char* name : kResults) {
      for (const auto& [step_key, prefix] :
           {std::pair("steps", ""), std::pair("best_step", "best_")}) {
        const auto step = step_of(run.summary, step_key);
        const auto value = number_of(run.summary, fmt::format("{}{}_{}", prefix, split, name));
        if (step && value) lacks_events |= add_missing(run.splits[split][name], *step, *value);
      }
    }
  }
  // A run without evaluations that is shorter than train.log_every has written no event.
  const auto steps = step_of(run.summary, "steps");
  const auto loss = number_of(run.summary, "train_loss");
  if (steps && loss && run.splits.empty()) run.splits["train"]["loss"].add(*steps, *loss);
  if (lacks_events) {
    run.remarks.emplace_back(
        "metrics.jsonl lacks the last or the best evaluation, which summary.json has");
  }
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(".h5") && entry.is_regular_file(error)) {
      files.push_back(entry.path().string());
    }
  }
  std::ranges::sort(files);
  return files;
}

void add_masks(const StepMasks& masks, int64_t most_pixels, RunData& run) {
  for (const MaskRecord& mask : masks.masks) {
    auto layer = std::ranges::find(run.layers, mask.name, &LayerData::name);
    if (layer == run.layers.end()) {
      run.layers.emplace_back().name = mask.name;
      layer = run.layers.end() - 1;
    }
    layer->shape = mask.shape;
    if (mask.shape.numel() == 0) continue;
    layer->picture_steps.push_back(masks.step);
    layer->pictures.push_back(picture_of(mask, most_pixels));
    layer->fan_in = mask.fan_in;
    layer->fan_in_step = masks.step;
    if (layer->actual.empty() || layer->actual.steps.back() < static_cast<double>(masks.step)) {
      layer->actual.add(static_cast<double>(masks.step),
                        static_cast<double>(mask.nnz) / static_cast<double>(mask.shape.numel()));
    }
  }
}

void read_pictures(const std::string& folder, int64_t most_pixels, RunData& run) {
  std::vector<std::string> files = files_of(folder + "/masks");
  auto read = read_masks;
  if (files.empty()) {
    files = files_of(folder + "/checkpoints");
    read = read_masks_of_checkpoint;
  }
  for (const std::string& file : files) {
    try {
      add_masks(read(file), most_pixels, run);
    } catch (const Error& error) {
      run.remarks.emplace_back(error.what());
    }
  }
  if (read == read_masks_of_checkpoint &&
      std::ranges::any_of(run.layers, [](const LayerData& l) { return !l.pictures.empty(); })) {
    run.remarks.emplace_back(
        "masks/ is missing, so the pictures show the checkpoints that are left");
  }
}

std::string state_of(const RunData& run) {
  if (is_locked(run.folder)) return "running";  // whoever trains in a folder holds a lock on it
  if (!run.summary.is_map()) return "unfinished";
  const Config stopped = run.summary.get("stopped_early");
  return stopped.is_bool() && stopped.as<bool>() ? "stopped early" : "finished";
}

// A JSON file of the run's folder; null where there is none.
Config read_map(const char* name, RunData& run) {
  const std::string path = run.folder + "/" + name;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto found = parse_json(text);
  if (found && found->is_map()) return *found;
  run.remarks.push_back(std::string(name) + " could not be read");
  return {};
}

void add_changes(RunData& run) {
  try {
    run.changes = read_changes(run.folder + "/changes.jsonl");
  } catch (const Error& error) {
    run.remarks.emplace_back(std::string("changes.jsonl could not be read: ") + error.what());
  }
}

// A run that was pruned or quantized, and not trained after that, has its result in prune.json or
// quantize.json, under a key.
void read_result(const Config& report, const char* key, RunData& run) {
  run.summary = report;
  const Config after = report.get(key);
  const Config splits = after.is_map() ? after.get("splits") : Config();
  if (!splits.is_list()) return;
  const double step = number_of(report, "step").value_or(0.0);
  for (const Config& split : splits.items()) {
    if (!split.is_map() || !split.get("split").is_scalar()) continue;
    SplitCurves& curves = run.splits[split.get("split").text()];
    for (const char* name : kResults) {
      if (const auto value = number_of(split, name)) curves[name].add(step, *value);
    }
  }
}

}  // namespace

RunData read_run(const std::string& folder, int64_t most_pixels) {
  require_run(folder);
  std::error_code error;
  RunData run{.folder = folder, .name = folder, .label = folder};
  try {
    run.config = load_yaml(folder + "/config.yaml");
  } catch (const ConfigError& damaged) {
    run.remarks.emplace_back(std::string("config.yaml could not be read: ") + damaged.what());
  }
  run.summary = read_map("summary.json", run);
  run.confusion = read_map("confusion.json", run);
  run.starts = read_starts(folder);
  add_changes(run);
  const bool has_metrics = fs::is_regular_file(folder + "/metrics.jsonl", error);
  const Config pruning = has_metrics ? Config() : read_map("prune.json", run);
  const Config quantizing = has_metrics ? Config() : read_map("quantize.json", run);
  if (quantizing.is_map()) {
    run.is_int8 = true;
    read_result(quantizing, "int8", run);
  } else if (pruning.is_map()) {
    read_result(pruning, "after", run);
  } else {
    read_metrics(folder + "/metrics.jsonl", run);
    add_results_of_summary(run);
  }
  if (most_pixels > 0) read_pictures(folder, most_pixels, run);
  run.state = state_of(run);
  return run;
}

int64_t picture_side(size_t runs, int64_t most_pixels) {
  constexpr double kWhole = 4.0;
  constexpr int64_t kLeast = 48;
  if (static_cast<double>(runs) <= kWhole) return most_pixels;
  const double scale = std::sqrt(kWhole / static_cast<double>(runs));
  const auto side = static_cast<int64_t>(static_cast<double>(most_pixels) * scale);
  return std::min(most_pixels, std::max(kLeast, side));
}

namespace {

void keep_first_and_last(RunData& run) {
  for (LayerData& layer : run.layers) {
    if (layer.pictures.size() <= 2) continue;
    layer.pictures.erase(layer.pictures.begin() + 1, layer.pictures.end() - 1);
    layer.picture_steps.erase(layer.picture_steps.begin() + 1, layer.picture_steps.end() - 1);
  }
}

}  // namespace

std::vector<RunData> read_runs(const std::vector<std::string>& folders, int64_t most_pixels) {
  for (const std::string& folder : folders) require_run(folder);
  const std::vector<std::string> names = names_of_folders(folders), labels = short_labels(names);
  const int64_t side = picture_side(folders.size(), most_pixels);
  std::vector<RunData> runs;
  for (size_t i = 0; i < folders.size(); ++i) {
    RunData& run = runs.emplace_back(read_run(folders[i], side));
    if (side < most_pixels) keep_first_and_last(run);
    run.name = names[i];
    run.label = labels[i];
  }
  return runs;
}

}  // namespace lacuna
