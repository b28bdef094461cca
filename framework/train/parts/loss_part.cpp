// The loss of an experiment, and the model that it learns from.
#include <fmt/core.h>

#include <string>
#include <vector>

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
