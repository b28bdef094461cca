#include "lacuna/sparsity/selected_part.h"

#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

DynamicOptions updating(const std::string& type, DynamicOptions options, int64_t every) {
  if (every < 1) {
    throw ConfigError(type + ": every must be at least 1, found " + std::to_string(every));
  }
  options.update = UpdateSchedule::every(every);
  return options;
}

}  // namespace

SelectedPart::SelectedPart(const std::string& type, DynamicOptions options, int64_t every)
    : StraightThrough(updating(type, std::move(options), every)), changes_every_step_(every == 1) {}

Positions SelectedPart::initial_positions(const Parameter& parameter) {
  return Positions::of(parameter.shape(), select(parameter));
}

Positions SelectedPart::first_positions(const Parameter& parameter, FirstMasks first) {
  return first == FirstMasks::Keep ? StraightThrough::first_positions(parameter, first)
                                   : initial_positions(parameter);
}

Positions SelectedPart::update_positions(const Parameter& parameter, const Positions&, float) {
  return initial_positions(parameter);
}

void SelectedPart::update_parameter(Parameter& parameter) {
  set_selected_mask(parameter, select(parameter));
}

void SelectedPart::on_apply(Module& module) {
  StraightThrough::on_apply(module);
  for (const ParameterPtr& parameter : parameters()) {
    parameter->changes_every_step = changes_every_step_;
  }
}

void SelectedPart::release() {
  for (const ParameterPtr& parameter : parameters()) parameter->changes_every_step = false;
  StraightThrough::release();
}

}  // namespace lacuna
