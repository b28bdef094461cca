// The model of an experiment, and its first values.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/nn/batch_user.h"
#include "lacuna/framework/train/checks/model_checks.hpp"
#include "lacuna/framework/train/checks/vocabulary_checks.hpp"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/framework/train/parts/experiment_part.hpp"
#include "lacuna/framework/train/parts/first_model.hpp"
#include "lacuna/framework/train/parts/parametrization.hpp"
#include "lacuna/framework/train/parts/sparsity_defaults.hpp"
#include "lacuna/framework/train/parts/widen.hpp"

namespace lacuna {
namespace {

void read_model(ExperimentBuild& b) {
  const Config section = b.e.config.at("model").clone();
  model_layers(section);
  if (section.is_map() && section.has("widen")) read_widen(section);
}

// By `model.frozen`, in addition to layers that freeze their own.
void freeze_parameters(Module& model, const Config& section) {
  const Config frozen = section.is_map() ? section.get("frozen") : Config();
  if (!frozen.is_null()) {
    at_position(frozen, [&] {
      model.freeze(frozen.is_scalar() ? std::vector<std::string>{frozen.as<std::string>()}
                                      : frozen.as<std::vector<std::string>>());
    });
  }
  const std::vector<ParameterPtr> all = model.parameters();
  if (std::ranges::any_of(all, [](const ParameterPtr& p) { return p->trainable; })) return;
  if (all.empty()) return;  // the optimizer reports it
  (frozen.is_null() ? section : frozen)
      .error(
          "all parameters of the model are frozen, so there is nothing to train; leave some out of "
          "`frozen`, or remove `trainable: false` from their layers");
}

// For values that are all dense: none are made sparse, and none come with masks.
LayerCheck size_check(const ExperimentBuild& b) {
  const Config model = b.e.config.at("model");
  const Config masks = model.is_map() ? model.get("init_from") : Config();
  for (const Config& section : {masks, b.e.config.get("sparsity"), b.e.config.get("sparsifiers")}) {
    if (!section.is_null() || !b.is_fresh()) return {};
  }
  return [&layers = b.e.layers, memory = total_memory()](const Module& made, const ModelLayer& at) {
    require_layer_fits(made, at, layers, memory);
  };
}

void build_model(ExperimentBuild& b) {
  Experiment& e = b.e;
  const Dataset& data = *e.data.train;
  std::string widened;
  if (b.is_fresh()) {
    widened = apply_widen(b);
    adopt_attention_scale(e.config);
  }
  const auto build = [&] {
    e.layers = model_layers(e.config.at("model"), model_context(b));
    e.model = build_model(e.layers, data.example_shape(), size_check(b));
  };
  build();
  if (b.is_fresh() && write_attention_scale(e.config, e.layers, *e.model, data.example_shape())) {
    build();
  }
  const Config section = e.config.at("model");
  require_tokens_fit(section, *e.model, data);
  e.loss.take_outputs(e.model->output_shape(data.example_shape()));
  require_output_fits(*e.model, e.layers, data,
                      {.shape = e.loss.output_shape(),
                       .values = e.loss.outputs(),
                       .values_are = e.loss.outputs_are()});
  require_attention_fits(*e.model, e.layers, data);
  require_sparse_inputs_fit(*e.model, e.layers, data);
  freeze_parameters(*e.model, section);
  e.model->initialize(e.train.seed);
  require_lengths_fit(*e.model, e.layers, e.data);
  e.rows = module_rows(*e.model, data.example_shape(), data.lengths());
  // First, because the masks of loaded values depend on the algorithm.
  e.chosen = complete_sparsity(
      e.config, {.model = e.model.get(),
                 .rows = e.rows,
                 .length = {.steps = e.total_steps(), .steps_per_epoch = e.steps_per_epoch()},
                 .is_fresh = b.is_fresh(),
                 .seed = e.train.seed});
  if (!widened.empty()) e.chosen = widened + (e.chosen.empty() ? "" : "; ") + e.chosen;
  if (b.is_fresh()) b.first = load_first_values(e.config, *e.model, e.data);
  for (const char* key : {"init_from", "widen"}) {
    if (section.is_map()) section.get(key).mark_read();
  }
}

// A norm cannot learn from one value per channel.
void check_model(ExperimentBuild& b) {
  const Experiment& e = b.e;
  const int64_t batch = e.train.batch_size;
  const bool has_last = batch > 1 && e.data.train->size() % batch == 1 && !e.train.drop_last &&
                        e.total_steps() >= e.steps_per_epoch();
  if (batch > 1 && !has_last) return;
  for (const ModuleRow& row : e.rows) {
    const auto* user = dynamic_cast<const BatchUser*>(row.module);
    if (user == nullptr || !user->needs_batch() || !row.input) continue;
    if (row.input->numel() > (*row.input)[0]) continue;
    e.config.at("train").error(fmt::format(
        "{} training {} of one example, and layer '{}' ({}), which is given shape {} per example, "
        "needs more than one value per channel; {}",
        has_last ? "the last batch of an epoch of" : "the batches of", has_last ? "is" : "are",
        row.module->path(), row.module->type(), row.input->to_string(),
        has_last ? "give drop_last: true, or another batch_size" : "give a larger batch_size"));
  }
}

}  // namespace

ExperimentPart model_part() {
  return {.read = read_model, .build = build_model, .check = check_model};
}

}  // namespace lacuna
