// The parametrization of an experiment: first values and rates by widths and densities.
#include <fmt/core.h>

#include <memory>
#include <utility>
#include <vector>

#include "lacuna/framework/train/parts/experiment_part.hpp"
#include "lacuna/framework/train/parts/first_model.hpp"
#include "lacuna/framework/train/parts/parametrization.hpp"

namespace lacuna {
namespace {

void read_section(ExperimentBuild& b) {
  if (b.e.config.has("parametrization")) read_parametrization(b.e.config.at("parametrization"));
}

void build_parametrization(ExperimentBuild& b) {
  Experiment& e = b.e;
  if (!e.config.has("parametrization")) {
    e.config.get("parametrization").mark_read();
    return;
  }
  const Config section = e.config.at("parametrization");
  ParametrizationOptions options = read_parametrization(section);
  if (e.optimizer->update_rule() == UpdateRule::Other) {
    e.config.at("optimizer")
        .at("type")
        .error(fmt::format(
            "the parametrization has no rules for the optimizer '{}', only for sgd, adam and adamw",
            e.optimizer->type()));
  }
  SizedModel sized =
      size_model(e.config, options, e.layers, *e.model, e.data.train->example_shape());
  if (has_own_scale(e.config)) {
    options.output_multiplier =
        options.output_multiplier && b.is_fresh() && loads_divided_outputs(e.config);
  }
  e.parametrization = std::make_shared<Parametrization>(options, std::move(sized.parameters),
                                                        e.optimizer->update_rule());
}

void finish_parametrization(ExperimentBuild& b) {
  Experiment& e = b.e;
  if (e.parametrization == nullptr) return;
  e.parametrization->take_first_densities(e.sparsity.get(), e.plan());
  if (b.is_fresh() && !has_own_scale(e.config)) e.parametrization->scale_first_values();
  e.parametrization->follow(*e.optimizer);
}

}  // namespace

ExperimentPart parametrization_part() {
  return {.read = read_section, .build = build_parametrization, .finish = finish_parametrization};
}

}  // namespace lacuna
