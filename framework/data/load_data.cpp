#include "lacuna/framework/data/load_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/added_channel.hpp"
#include "lacuna/framework/data/data_checks.hpp"
#include "lacuna/framework/data/hold_out.hpp"
#include "lacuna/framework/data/missing_values.hpp"

namespace lacuna {
namespace {

std::vector<double> number_or_list(const Config& map, std::string_view key) {
  const Config node = map.at(key);
  if (node.is_list()) return node.as<std::vector<double>>();
  return {node.as<double>()};
}

// The normalization of `data`, given the remaining training examples.
Normalization choose_normalization(const Config& data, const ArrayDataset& train,
                                   std::span<const int64_t> indices) {
  const Config node = data.get("normalize");
  if (node.is_map()) return {number_or_list(node, "mean"), number_or_list(node, "std")};
  const bool is_image = train.examples().has_byte_inputs();
  const auto name = data.get<std::string>("normalize", is_image ? "unit" : "none");
  if (name == "standard") return train.standard_normalization(indices);
  if (name == "unit") {
    if (!is_image) node.error("unit is for images, which are stored as bytes; found float inputs");
    return {};
  }
  if (name == "none") return is_image ? Normalization{{0.0}, {1.0 / 255.0}} : Normalization{};
  node.fail("none, unit, standard or {mean: m, std: s}");
}

// Of a split whose examples a program makes one by one.
[[noreturn]] void refuse_examples(const Config& data, const std::string& key,
                                  std::string_view split) {
  const std::string message = fmt::format(
      "the {} split gives its examples one by one, and {} changes only arrays; give all splits as "
      "arrays, or leave this key out and change the examples in the dataset",
      split, key);
  if (data.has(key)) data.get(key).error(message);
  data.error("data." + key + ": " + message);
}

std::shared_ptr<const Dataset> normalized(const Config& data, std::string_view split,
                                          const std::shared_ptr<const Dataset>& dataset,
                                          const Normalization& normalization) {
  const auto arrays = std::dynamic_pointer_cast<const ArrayDataset>(dataset);
  if (arrays == nullptr) {
    if (normalization == Normalization{}) return dataset;
    refuse_examples(data, "normalize", split);
  }
  try {
    return arrays->normalized(normalization);
  } catch (const DataError& error) {
    data.get("normalize").error("on the " + std::string(split) + " split: " + error.what());
  }
}

void normalize(const Config& data, DataSplits& splits, const HoldOut& parts) {
  const auto train = std::dynamic_pointer_cast<const ArrayDataset>(splits.train);
  if (train == nullptr) {
    if (data.has("normalize")) {
      if (data.peek("type").text() == "python") refuse_examples(data, "normalize", "training");
      data.get("normalize")
          .error("data of the type '" + data.required<std::string>("type") +
                 "' sets its own normalization; leave this key out");
    }
    return;
  }
  splits.normalization = choose_normalization(data, *train, parts.staying());
  const Normalization& normalization = splits.normalization;
  splits.train = normalized(data, "training", splits.train, normalization);
  if (splits.validation != nullptr) {
    splits.validation = normalized(data, "validation", splits.validation, normalization);
  }
  if (splits.test != nullptr) {
    splits.test = normalized(data, "test", splits.test, normalization);
  }
}

// Mean and standard deviation of each output over the training examples that stay.
void measure_targets(const Examples& train, std::span<const int64_t> indices, DataSplits& splits) {
  const auto outputs = static_cast<size_t>(train.num_outputs);
  const auto n = static_cast<double>(indices.size());
  std::vector<double> mean(outputs, 0.0), squares(outputs, 0.0);
  const auto for_each = [&](const auto& use) {
    for (const int64_t index : indices) {
      const float* row = train.targets.data() + static_cast<size_t>(index) * outputs;
      for (size_t j = 0; j < outputs; ++j) use(j, static_cast<double>(row[j]));
    }
  };
  for_each([&](size_t j, double value) { mean[j] += value / n; });
  for_each([&](size_t j, double value) { squares[j] += (value - mean[j]) * (value - mean[j]); });
  splits.target_mean = mean;
  for (const double sum : squares) {
    const double std = std::sqrt(sum / n);
    splits.target_std.push_back(std > 0.0 ? std : 1.0);  // of a constant: it becomes 0
  }
}

// The scaling that `normalize_targets` gives or requests.
void choose_target_scaling(const Config& node, const Examples& train,
                           std::span<const int64_t> indices, DataSplits& splits) {
  if (!node.is_map()) {
    if (node.as<bool>()) measure_targets(train, indices, splits);
    return;
  }
  splits.target_mean = number_or_list(node, "mean");
  splits.target_std = number_or_list(node, "std");
  const auto outputs = static_cast<size_t>(train.num_outputs);
  if (splits.target_mean.size() != outputs || splits.target_std.size() != outputs ||
      !std::ranges::all_of(splits.target_mean, [](double m) { return std::isfinite(m); }) ||
      !std::ranges::all_of(splits.target_std, [](double s) { return s > 0.0 && s <= 1e30; })) {
    node.fail(fmt::format(
        "true, false, or a finite mean and a std above 0 for each of the {} outputs", outputs));
  }
}

std::shared_ptr<const Dataset> with_scaled_targets(const Config& data, std::string_view split,
                                                   const std::shared_ptr<const Dataset>& dataset,
                                                   const DataSplits& splits) {
  if (dataset == nullptr) return nullptr;
  const auto arrays = std::dynamic_pointer_cast<const ArrayDataset>(dataset);
  if (arrays == nullptr) refuse_examples(data, "normalize_targets", split);
  Examples examples = arrays->examples();
  const size_t outputs = splits.target_std.size();
  for (size_t i = 0; i < examples.targets.size(); ++i) {
    const size_t j = i % outputs;
    examples.targets[i] = static_cast<float>(
        (static_cast<double>(examples.targets[i]) - splits.target_mean[j]) / splits.target_std[j]);
  }
  return std::make_shared<const ArrayDataset>(std::move(examples));
}

// By `data.normalize_targets`.
void normalize_targets(const Config& data, DataSplits& splits, const HoldOut& parts) {
  if (!data.has("normalize_targets")) return;
  const Config node = data.get("normalize_targets");
  const auto train = std::dynamic_pointer_cast<const ArrayDataset>(splits.train);
  if (train == nullptr || train->num_outputs() == 0) {
    node.error("this is for regression, whose targets are numbers; leave this key out");
  }
  choose_target_scaling(node, train->examples(), parts.staying(), splits);
  if (splits.target_std.empty()) return;
  splits.train = with_scaled_targets(data, "training", splits.train, splits);
  splits.validation = with_scaled_targets(data, "validation", splits.validation, splits);
  splits.test = with_scaled_targets(data, "test", splits.test, splits);
}

// What a stored 0 becomes: one value, or one per channel.
std::vector<float> normalized_zero(const Config& augment, const Normalization& normalization,
                                   const Shape& example) {
  const std::vector<double>&mean = normalization.mean, &std = normalization.std;
  const size_t values = std::max(mean.size(), std.size());
  if (values != 1 && (example.rank() != 3 || values != static_cast<size_t>(example[0]))) {
    augment.error(
        "crop pads with the normalized value of 0, but here each feature has its own "
        "normalization; set data.normalize to one for all, or one per channel");
  }
  std::vector<float> zeros(values);
  for (size_t i = 0; i < values; ++i) {
    const size_t of_mean = mean.size() == 1 ? 0 : i, of_std = std.size() == 1 ? 0 : i;
    zeros[i] = static_cast<float>(-mean[of_mean] / std[of_std]);
  }
  return zeros;
}

// The operations work on bytes, so what a byte is as an input has to be known.
void read_rand_augment(const Config& augment, const DataSplits& splits, AugmentOptions& options) {
  const Config node = augment.get("rand_augment");
  if (node.is_null()) return;
  RandAugmentOptions& rand = options.rand_augment;
  rand.operations = node.get<int64_t>("operations", 2);
  rand.magnitude = node.get<double>("magnitude", rand.magnitude);
  const auto* arrays = dynamic_cast<const ArrayDataset*>(splits.train.get());
  if (arrays == nullptr || !arrays->examples().has_byte_inputs()) {
    node.error("rand_augment is for images, which are stored as bytes; these inputs are not");
  }
  options.byte_scales.clear();
  options.byte_offsets.clear();
  for (const ByteScale& scale : arrays->byte_scales()) {
    options.byte_scales.push_back(scale.scale);
    options.byte_offsets.push_back(scale.offset);
  }
}

AugmentOptions read_augment(const Config& data, const DataSplits& splits) {
  AugmentOptions options;
  const Config node = data.get("augment");
  if (node.is_null()) return options;
  options.crop = require_at_least(node, "crop", node.get<int64_t>("crop", 0), 0);
  options.flip = node.get<bool>("flip", false);
  options.cutout = require_at_least(node, "cutout", node.get<int64_t>("cutout", 0), 0);
  options.mixup = node.get<double>("mixup", 0.0);
  const Shape& example = splits.train->example_shape();
  read_rand_augment(node, splits, options);
  try {
    require_augmentable(options, example);
  } catch (const DataError& error) {
    node.error(error.what());
  }
  if (options.crop > 0) options.padding = normalized_zero(node, splits.normalization, example);
  return options;
}

}  // namespace

TaskKeys read_task(const Config& data) {
  const auto name = data.get<std::string>("task", "classification");
  if (name == "regression") return {Task::Regression, 0};
  if (name != "classification") data.get("task").fail("classification or regression");
  const auto num_classes = data.get<int64_t>("num_classes", 0);
  if (num_classes < 0 || num_classes == 1 || num_classes > kMaxClasses) {
    data.get("num_classes")
        .fail(fmt::format("an integer from 2 to {}, or 0 to take it from the training labels",
                          kMaxClasses));
  }
  return {Task::Classification, num_classes};
}

DataSplits load_data(const Config& data, uint64_t seed) {
  const auto type = data.required<std::string>("type");
  const DatasetType& dataset = dataset_registry().find(type, data.at("type")).make;
  DataSplits splits =
      with_named_paths(data, dataset.paths, [&] { return dataset.load(data, seed); });
  if (splits.train == nullptr || splits.train->size() == 0) {
    throw DataError(data.where() + ": the data of type '" + type + "' has no training examples");
  }
  splits = with_added_channel(data, std::move(splits));
  const bool is_next_token = splits.train->num_classes() == splits.train->vocabulary_size();
  if (splits.train->num_classes() == 1 && !is_next_token) {
    data.error(
        "all training labels are 0, and classification needs two classes; choose another label "
        "column, or set task: regression or num_classes");
  }
  require_plausible_labels(data, *splits.train);
  require_number_of_classes(data, *splits.train);
  if (const auto* arrays = dynamic_cast<const ArrayDataset*>(splits.train.get());
      arrays != nullptr && arrays->num_classes() > 0 && arrays->class_names().empty()) {
    report_label_gaps(data, arrays->examples().labels, arrays->num_classes());
  }
  require_no_image_keys(data, *splits.train);
  HoldOut parts = hold_out(data, splits, seed);
  if (parts.train) report_lost_classes(data, *splits.train, *parts.train);
  splits.hashes = hash_splits(data, splits);
  fill_missing(splits, parts);
  normalize_targets(data, splits, parts);
  normalize(data, splits, parts);
  splits.augment = read_augment(data, splits);
  splits.sampling = read_sampling(data, *splits.train);
  if (!parts.validation.empty()) {
    splits.validation = subset(splits.train, std::move(parts.validation));
  }
  if (!parts.test.empty()) splits.test = subset(splits.train, std::move(parts.test));
  if (parts.train) splits.train = subset(splits.train, std::move(*parts.train));
  return splits;
}

void write_new_run_keys(Config data) {
  for (const auto& [key, value] : dataset_type(data).new_run_keys) {
    if (data.peek(key).is_null()) data.set(key, Config::plain(value));
  }
}

void require_known_data_keys(const Config& data) {
  // What is asked for after files were read; all else was, or they were not tried.
  static const std::vector<std::string> of_all = {"validation", "limit",       "normalize",
                                                  "augment",    "num_classes", "normalize_targets",
                                                  "sampling",   "add_channel"};
  const auto& of_type = dataset_type(data).late_keys;
  if (!of_type) return;
  for (const auto* keys : {&of_all, &*of_type}) {
    for (const std::string& key : *keys) data.get(key).mark_read();
  }
  data.require_all_read();
}

bool has_training_files(const Config& data) {
  const DatasetType& dataset = dataset_type(data);
  if (dataset.has_training_files) return dataset.has_training_files(data);
  if (dataset.paths.empty() || !data.has(dataset.paths.front())) return true;
  std::error_code ignored;
  return std::filesystem::exists(data.required<std::string>(dataset.paths.front()), ignored);
}

DataSplits load_held_out(const Config& data, uint64_t seed, const KnownData& known) {
  const DatasetType& dataset = dataset_type(data);
  if (!dataset.load_held_out) return {};
  DataSplits splits = with_named_paths(data, dataset.paths,
                                       [&] { return dataset.load_held_out(data, seed, known); });
  splits = with_added_channel(data, std::move(splits));
  splits.hashes = hash_splits(data, splits);
  splits.train = splits.test != nullptr ? splits.test : splits.validation;
  if (splits.train == nullptr) return splits;
  const HoldOut parts{.size = splits.train->size(), .train = {}};
  fill_missing(splits, parts);
  normalize_targets(data, splits, parts);
  normalize(data, splits, parts);
  data.mark_read();  // what is of the training examples alone
  return splits;
}

}  // namespace lacuna
