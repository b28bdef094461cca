// `lacuna eval`: loss and accuracy of a checkpoint.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/program/checkpoint_choice.hpp"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/program/confusion_matrix.hpp"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/experiment.h"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/run_folder.h"

namespace lacuna {
namespace {

// The model and its training are those of the checkpoint; the data that it is evaluated on, and the
// way, may be others.
void apply_eval_overrides(Config& config, const std::vector<std::string>& assignments) {
  for (const std::string& assignment : assignments) {
    apply_override(config, assignment);
    const std::string section = assignment.substr(0, assignment.find_first_of(".="));
    if (section != "data" && section != "train" && section != "loss") {
      throw ConfigError("--set " + assignment + ": eval takes the checkpoint's " + section +
                        "; only data, loss and train may be changed");
    }
  }
  for (const char* section : {"model", "optimizer", "sparsity", "sparsify", "csr_up_to",
                              "convolution_algorithms", "run_dir"}) {
    config.get(section).mark_read();
  }
}

// New data is normalized as the training data was, unless told otherwise.
void keep_normalization(Config& config, const InputFormat& format) {
  Config data = config.at("data");
  if (!data.has("normalize")) return;  // data that sets its own
  data.set("normalize", Config::map({{"mean", Config::from_value(format.normalization.mean)},
                                     {"std", Config::from_value(format.normalization.std)}}));
}

// Data without names has the classes that the model was trained on.
void require_same_classes(const std::vector<std::string>& data,
                          const std::vector<std::string>& model) {
  if (data.empty() || model.empty() || data == model) return;
  const auto differ = std::ranges::mismatch(data, model).in1 - data.begin();
  const auto name = [&](const std::vector<std::string>& names) {
    const auto at = static_cast<size_t>(differ);
    return at < names.size() ? "'" + names[at] + "'" : std::string("none");
  };
  throw DataError(fmt::format(
      "the data has {} classes, of which number {} is {}; the model was trained on {}, where it is "
      "{}",
      data.size(), differ, name(data), model.size(), name(model)));
}

Config to_config(const char* split, const Evaluation& result) {
  if (!std::isfinite(result.loss)) {
    throw Error(
        fmt::format("the {} loss is NaN or infinite: the model gives outputs that are no "
                    "numbers for some of its {} examples",
                    split, result.examples));
  }
  Config entry = Config::map({{"split", split}, {"loss", result.loss}});
  if (!std::isnan(result.accuracy)) entry.set("accuracy", result.accuracy);
  if (!std::isnan(result.top5_accuracy)) entry.set("top5_accuracy", result.top5_accuracy);
  if (!std::isnan(result.perplexity)) entry.set("perplexity", result.perplexity);
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
  if (classes == 0 || classes > ConfusionMatrix::kMostClasses || loss.labels_tokens()) {
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

void print(const Config& entry, int64_t step) {
  std::printf("%-10s loss %.6g", entry.required<std::string>("split").c_str(),
              entry.required<double>("loss"));
  if (entry.has("accuracy")) {
    std::printf("  accuracy %.2f %%", 100 * entry.required<double>("accuracy"));
  }
  if (entry.has("top5_accuracy")) {
    std::printf("  top-5 %.2f %%", 100 * entry.required<double>("top5_accuracy"));
  }
  if (entry.has("perplexity"))
    std::printf("  perplexity %.4g", entry.required<double>("perplexity"));
  std::printf("  (%lld examples, step %lld)\n",
              static_cast<long long>(entry.required<int64_t>("examples")),
              static_cast<long long>(step));
}

}  // namespace

int run_eval(const EvalCommand& command) {
  const CheckpointFile file = choose_checkpoint(command.checkpoint, command.last);
  const std::string& path = file.path();
  const Checkpoint checkpoint = file.read();
  Config config = saved_config(checkpoint, path);
  InputFormat format;
  naming_file(path, [&] { format = InputFormat::from_state(checkpoint.state.below("data")); });
  keep_normalization(config, format);
  apply_eval_overrides(config, command.overrides);
  const TrainOptions train = TrainOptions::from_config(config.get("train"));
  if (train.threads > 0) set_num_threads(train.threads);
  const DataSplits data = load_data(config.at("data"), train.seed);
  if (data.train->example_shape() != format.example_shape) {
    throw DataError("the data has examples of shape " + data.train->example_shape().to_string() +
                    ", and the model was trained on " + format.example_shape.to_string());
  }
  require_same_classes(data.train->class_names(), format.class_names);
  const LossFunction loss = LossFunction::from_config(config, *data.train);
  config.require_all_read();
  std::unique_ptr<Sequential> model;
  naming_file(path, [&] { model = rebuild_model(config, checkpoint.state, format.example_shape); });

  Config splits = Config::list();
  const auto add = [&](const char* split, const std::shared_ptr<const Dataset>& dataset) {
    if (dataset == nullptr) return;
    splits.push_back(evaluate_split(split, *model, loss, *dataset, train.eval_batch_size));
  };
  add("validation", data.validation);
  add("test", data.test);
  if (splits.items().empty()) {
    throw DataError("the data has neither a test nor a validation split to evaluate on");
  }
  if (command.json) {
    const Config report =
        Config::map({{"checkpoint", path}, {"step", checkpoint.step}, {"splits", splits}});
    std::fputs(report.to_json_indented().c_str(), stdout);
    return kDone;
  }
  for (const Config& entry : splits.items()) print(entry, checkpoint.step);
  return kDone;
}

}  // namespace lacuna
