#include "lacuna/framework/program/output/evaluation_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/io/progress.h"
#include "lacuna/framework/train/confusion_matrix.hpp"
#include "lacuna/framework/train/evaluation.h"

namespace lacuna {

void keep_normalization(Config& config, const InputFormat& format) {
  Config data = config.at("data");
  if (!data.has("normalize")) return;  // data that sets its own
  if (!format.fill.empty()) data.set("missing", Config::from_value(format.fill));
  if (!format.target_std.empty()) {
    data.set("normalize_targets", Config::map({{"mean", Config::from_value(format.target_mean)},
                                               {"std", Config::from_value(format.target_std)}}));
  }
  data.set("normalize", Config::map({{"mean", Config::from_value(format.normalization.mean)},
                                     {"std", Config::from_value(format.normalization.std)}}));
}

void require_same_classes(const std::vector<std::string>& data,
                          const std::vector<std::string>& model) {
  if (model.empty() || data == model) return;
  if (data.empty()) {
    throw DataError("the data's classes are numbers, and the model was trained on names: " +
                    join(std::span(model).first(std::min<size_t>(model.size(), 8)), ", ") +
                    (model.size() > 8 ? ", …" : ""));
  }
  const auto differ = std::ranges::mismatch(data, model).in1 - data.begin();
  const auto name = [&](const std::vector<std::string>& names) {
    const auto at = static_cast<size_t>(differ);
    return at < names.size() ? "'" + names[at] + "'" : std::string("none");
  };
  throw DataError(fmt::format(
      "the data has {}, of which number {} is {}; the model was trained on {}, where it is {}",
      plural(static_cast<int64_t>(data.size()), "class", "classes"), differ, name(data),
      model.size(), name(model)));
}

namespace {

Config to_config(const char* split, const Evaluation& result) {
  if (!std::isfinite(result.loss)) {
    throw Error(
        fmt::format("the {} loss is NaN or infinite: the model's outputs are not finite, or too "
                    "large, for at least one of {}",
                    split, plural(result.examples, "example")));
  }
  Config entry = Config::map({{"split", split}, {"loss", result.loss}});
  if (!std::isnan(result.accuracy)) entry.set("accuracy", result.accuracy);
  if (!std::isnan(result.top5_accuracy)) entry.set("top5_accuracy", result.top5_accuracy);
  if (std::isfinite(result.perplexity)) entry.set("perplexity", result.perplexity);
  if (!std::isnan(result.bits_per_character)) {
    entry.set("bits_per_character", result.bits_per_character);
  }
  if (!std::isnan(result.unknown_tokens)) entry.set("unknown_tokens", result.unknown_tokens);
  for (const auto& [name, value] : other_results(result)) entry.set(name, value);
  entry.set("examples", result.examples);
  return entry;
}

// With the confusion matrix where examples have one label each, and not too many classes.
Config evaluate_split(const char* split, Module& model, const LossFunction& loss,
                      const Dataset& data, int64_t batch_size) {
  int64_t classes = loss.num_classes();
  if (loss.is_classification()) {  // other data may know fewer of them
    classes = std::max(classes, model.output_shape(data.example_shape()).features());
  }
  if (classes == 0 || classes > ConfusionMatrix::kMostClasses || loss.has_token_labels()) {
    return to_config(split, evaluate(model, loss, data, batch_size));
  }
  ConfusionMatrix confusion(classes);
  const auto add = [&](const Tensor& output, const Batch& batch) {
    confusion.add(batch.labels, loss.predicted_classes(output));
  };
  Config entry = to_config(split, evaluate(model, loss, data, batch_size, add));
  entry.set("confusion_matrix", confusion.to_config());
  return entry;
}

}  // namespace

Config evaluate_splits(Module& model, const LossFunction& loss, const DataSplits& data,
                       int64_t batch_size) {
  Config splits = Config::list();
  const auto add = [&](const char* split, const std::shared_ptr<const Dataset>& dataset) {
    if (dataset == nullptr) return;
    splits.push_back(evaluate_split(split, model, loss, *dataset, batch_size));
  };
  add("validation", data.validation);
  add("test", data.test);
  return splits;
}

std::string describe_evaluation(const Config& entry) {
  std::string line = fmt::format("{:<10} loss {:.6g}", entry.required<std::string>("split"),
                                 entry.required<double>("loss"));
  if (entry.has("accuracy")) {
    line += fmt::format("  accuracy {:.2f} %", 100 * entry.required<double>("accuracy"));
  }
  if (entry.has("top5_accuracy")) {
    line += fmt::format("  top-5 {:.2f} %", 100 * entry.required<double>("top5_accuracy"));
  }
  if (entry.has("perplexity")) {
    line += fmt::format("  perplexity {:.4g}", entry.required<double>("perplexity"));
  }
  if (entry.has("bits_per_character")) {
    const double unknown = entry.has("unknown_tokens") ? entry.required<double>("unknown_tokens")
                                                       : std::numeric_limits<double>::quiet_NaN();
    line += "  " + bits_in_words(entry.required<double>("bits_per_character"), unknown);
  }
  for (const PrecisionAt& precision : kPrecisions) {
    if (!entry.has(precision.name)) continue;
    line += fmt::format("  P@{} {:.2f} %", precision.count,
                        100 * entry.required<double>(precision.name));
  }
  if (entry.has("r2")) line += fmt::format("  R² {:.4f}", entry.required<double>("r2"));
  for (const auto& [key, name] : {std::pair{"mae", "MAE"}, {"rmse", "RMSE"}}) {
    if (entry.has(key)) line += fmt::format("  {} {}", name, rounded(entry.required<double>(key)));
  }
  return line + "  (" + plural(entry.required<int64_t>("examples"), "example");
}

}  // namespace lacuna
