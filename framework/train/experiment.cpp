#include "lacuna/framework/train/experiment.h"

#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/model_builder.h"
#include "lacuna/framework/train/model_file.h"
#include "lacuna/optimizers/optimizer_registry.h"
#include "lacuna/sparsity/configure.h"

namespace lacuna {
namespace {

void require_known_sections(const Config& config) {
  if (!config.is_map()) config.fail("a map with model, data, optimizer and train");
  for (const char* section :
       {"model", "data", "loss", "optimizer", "sparsity", "train", "run_dir"}) {
    config.get(section);
  }
  for (const auto& [key, value] : Config(config).clone().entries()) {
    bool known = false;
    for (const char* section :
         {"model", "data", "loss", "optimizer", "sparsity", "train", "run_dir"}) {
      known |= key == section;
    }
    if (!known) config.require_all_read();
  }
}

// The last layer's output must be what the loss compares with the data.
void require_output_fits(const Experiment& e) {
  const Dataset& data = *e.data.train;
  const Shape output = e.model->output_shape(data.example_shape());
  const int64_t wanted = e.loss.is_classification() ? data.num_classes() : data.num_outputs();
  if (output.rank() == 1 && output[0] == wanted) return;
  const auto last = e.model->children().back();
  const std::vector<Config> layers = model_layers(e.config.get("model")).items();
  layers.back().error("layer '" + last.first + "' (" + std::string(last.second->type()) +
                      "), the last one, gives shape " + output.to_string() +
                      " per example; the data has " + std::to_string(wanted) +
                      (e.loss.is_classification() ? " classes" : " target values") +
                      ", so it must give [" + std::to_string(wanted) + "]");
}

}  // namespace

int64_t Experiment::numel() const {
  int64_t total = 0;
  for (const ParameterPtr& parameter : model->parameters()) total += parameter->numel();
  return total;
}

int64_t Experiment::nnz() const {
  int64_t total = 0;
  for (const ParameterPtr& parameter : model->parameters()) total += parameter->pattern()->nnz();
  return total;
}

std::unique_ptr<Experiment> build_experiment(const Config& config) {
  register_builtins();
  require_known_sections(config);
  auto e = std::make_unique<Experiment>();
  e->config = config;
  Config(config).get("run_dir");
  if (!config.has("train")) Config(config).set("train", Config::map());
  e->train = TrainOptions::from_config(config.get("train"));
  if (e->train.threads > 0) set_num_threads(e->train.threads);
  const Config model = config.at("model");
  model_layers(model);  // a missing list is reported before the data is read
  e->data = load_data(config.at("data"), e->train.seed);
  e->loss = LossFunction::from_config(config, *e->data.train);
  e->model = build_model(model_layers(model), e->data.train->example_shape());
  require_output_fits(*e);
  e->model->initialize(e->train.seed);
  if (model.is_map()) {
    if (const auto path = model.optional<std::string>("init_from")) {
      load_model(*path, *e->model);
    }
  }
  e->optimizer = make_optimizer(config.at("optimizer"), e->model->parameters());
  e->sparsity = configure(config.get("sparsity"), e->train.seed);
  config.require_all_read();
  if (e->sparsity != nullptr) {
    e->model->apply(*e->sparsity);
    e->optimizer->apply(*e->sparsity);
  }
  const bool needs_validation = e->train.checkpoint.keep_best || e->train.early_stopping;
  if (needs_validation && e->data.validation == nullptr) {
    config.get("train").error(
        "keep_best and early_stopping judge by a validation split, and there is none; hold one out "
        "with data.validation (a fraction such as 0.1, or a number of examples)");
  }
  return e;
}

std::unique_ptr<Sequential> load_model(const Config& config, const StateDict& state,
                                       const Shape& example_shape) {
  register_builtins();
  auto model = build_model(model_layers(config.at("model")), example_shape);
  model->load_state_dict(state.below("model"));
  model->eval();
  return model;
}

}  // namespace lacuna
