// The loss of an experiment, and the model that it learns from.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/train/checks/column_checks.hpp"
#include "lacuna/framework/train/checks/ignored_labels.hpp"
#include "lacuna/framework/train/checks/model_checks.hpp"
#include "lacuna/framework/train/checks/vocabulary_checks.hpp"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/parts/experiment_part.hpp"
#include "lacuna/framework/train/runs/run_folder.h"

namespace lacuna {
namespace {

void build_loss(ExperimentBuild& b) {
  Experiment& e = b.e;
  for (const char* key : {"loss.class_weights", "loss.pos_weight"}) {
    const Config weights = e.config.get("loss").is_map() ? e.config.peek(key) : Config();
    if (e.data.sampling == Sampling::Balanced && weights.text() == "balanced") {
      weights.error("data.sampling already draws classes equally often; leave one of the two out");
    }
  }
  e.loss = LossFunction::from_config(e.config, *e.data.train);
  if (const auto label = e.loss.ignored_label()) e.data = with_ignored_label(e.data, *label);
  e.loss.set_target_scale(e.data.target_std);
  const Config data = e.config.at("data");
  if (!e.data.target_std.empty() && !e.loss.is_regression()) {
    data.get("normalize_targets").error("this is only for the loss mse");
  }
  // Mixtures are of two classes, so they have no class's weight.
  if (e.data.augment.mixup != 0.0 && e.loss.depends_on_class()) {
    data.at("augment").at("mixup").error(
        "mixtures of two classes cannot be weighted by class; leave out mixup or "
        "loss.class_weights and loss.ignore_index");
  }
}

// The error names the key that asks for the teacher.
CheckpointFile find_teacher(const Config& key) {
  try {
    return find_checkpoint(key.as<std::string>());
  } catch (const CheckpointError& error) {
    throw CheckpointError(key.where() + ": " + error.what());
  }
}

// A teacher reads columns by their place.
void check_teachers_columns(const InputFormat& teacher, const Experiment& e) {
  const auto [moved, renamed] =
      compare_columns({.inputs = teacher.columns, .label = {}, .categories = teacher.categories},
                      {.inputs = e.data.columns, .label = {}, .categories = e.data.categories});
  if (!moved.empty()) throw ConfigError("the teacher was trained on a table, and " + moved);
  const bool is_table = e.data.train->vocabulary_size() == 0;  // text is found by the configuration
  if (!renamed.empty() && is_table)
    log_warning("the teacher reads columns by position: " + renamed);
}

// The teacher gets this run's inputs as they are, and its outputs are for these classes. Statistics
// may be measured on other examples of the same kind.
void check_teachers_inputs_and_classes(const InputFormat& teacher, const Experiment& e) {
  const std::vector<std::string> names = e.data.train->class_names();
  if (!teacher.class_names.empty() && !names.empty() && teacher.class_names != names) {
    throw ConfigError("the teacher's classes are " + join(teacher.class_names, ", ") +
                      ", and the data's " + join(names, ", "));
  }
  const Normalization &own = e.data.normalization, &its = teacher.normalization;
  const auto at = [](const std::vector<double>& values, size_t i) {
    return values[values.size() == 1 ? 0 : i];
  };
  const size_t count = std::max({own.mean.size(), own.std.size(), its.mean.size(), its.std.size()});
  for (const auto* values : {&own.mean, &own.std, &its.mean, &its.std}) {
    if (values->size() != 1 && values->size() != count) return;  // of other inputs
  }
  constexpr double kClose = 0.1;  // of a standard deviation
  for (size_t i = 0; i < count; ++i) {
    const double std = at(its.std, i);
    const bool is_close = std::abs(at(own.mean, i) - at(its.mean, i)) <= kClose * std &&
                          std::abs(at(own.std, i) - std) <= kClose * std;
    if (is_close) continue;
    throw ConfigError(
        fmt::format("the teacher was trained on inputs normalized by mean {:.4g} and std {:.4g}, "
                    "and here they are by mean {:.4g} and std {:.4g}{}; set data.normalize as the "
                    "teacher's run has it",
                    at(its.mean, i), std, at(own.mean, i), at(own.std, i),
                    count > 1 ? fmt::format(" (feature or channel {})", i) : ""));
  }
}

// The part of a teacher's state that it answers by.
StateDict weights_of(const Checkpoint& checkpoint, const Config& config) {
  StateDict weights;
  weights.merge("model", checkpoint.state.below("model"));
  const Config train = config.get("train");
  if (train.is_map() && train.has("ema")) weights.merge("ema", checkpoint.state.below("ema"));
  return weights;
}

std::unique_ptr<Sequential> load_teacher(const Config& key, const Experiment& e,
                                         RunOrigins& origins) {
  const CheckpointFile file = find_teacher(key);
  const Checkpoint checkpoint = file.read();
  const Config config = saved_config(checkpoint, file.path());
  const Shape& example = e.data.train->example_shape();
  const InputFormat format = InputFormat::from_state(checkpoint.state.below("data"));
  require_teachers_vocabulary(*e.data.train, format.tokenizer);
  check_teachers_columns(format, e);
  check_teachers_inputs_and_classes(format, e);
  origins.teacher = {.step = checkpoint.step, .hash = hash_state(weights_of(checkpoint, config))};
  std::unique_ptr<Sequential> teacher;
  naming_file(file.path(), [&] { teacher = rebuild_model(config, checkpoint.state, example); });
  if (const auto misfit = find_attention_misfit(*teacher, *e.data.train)) {
    throw ConfigError(fmt::format("the teacher's layer '{}' ({}) {}", misfit->layer, misfit->type,
                                  misfit->reason));
  }
  if (teacher->output_shape(example) == e.loss.output_shape()) return teacher;
  throw ConfigError(fmt::format("the teacher gives shape {} per example, but the data needs {}",
                                teacher->output_shape(example).to_string(),
                                e.loss.output_shape().to_string()));
}

void finish_loss(ExperimentBuild& b) {
  if (!b.e.loss.distillation()) return;
  const Config key = b.e.config.at("loss").at("teacher");
  b.e.teacher = at_position(key, [&] { return load_teacher(key, b.e, b.origins); });
}

}  // namespace

ExperimentPart loss_part() { return {.build = build_loss, .finish = finish_loss}; }

}  // namespace lacuna
