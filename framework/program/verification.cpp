#include "lacuna/framework/program/verification.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/program/settings/layout_config.hpp"
#include "lacuna/framework/train/loop/training_step.hpp"

namespace lacuna {
namespace {

double relative(double difference, double largest) {
  return difference == 0.0 ? 0.0 : difference / largest;
}

void note_value(double value, double reference, const std::string& name, ModelDifferences& d) {
  const double difference = std::abs(value - reference);
  d.largest_value = std::max(d.largest_value, std::abs(reference));
  // A difference that is NaN is the largest, and stays.
  if (difference <= d.value || std::isnan(d.value)) return;
  d.value = difference;
  d.parameter = name;
}

// A sparsifier that draws by the bits of its tensor draws something else after the first rounding.
void require_comparable(const Config& sparsify) {
  if (sparsify.is_null()) return;
  for (const Config& entry : sparsify.items()) {
    const Config sparsifier = entry.get("sparsifier");
    const Config type = sparsifier.is_map() ? sparsifier.get("type") : sparsifier;
    if (to_lower(type.text()) != "random_fraction") continue;
    sparsifier.error(
        "--verify cannot compare runs with random_fraction: its draws depend on every bit of the "
        "tensor, and layouts round differently");
  }
}

}  // namespace

double ModelDifferences::relative_loss() const { return relative(loss, largest_loss); }
double ModelDifferences::relative_value() const { return relative(value, largest_value); }

bool ModelDifferences::is_within_tolerance() const {
  return relative_loss() <= kVerifyTolerance && relative_value() <= kVerifyTolerance &&
         positions <= positions_allowed;
}

std::string ModelDifferences::to_string() const {
  return fmt::format(
      "the loss differs by at most {:.2g} of the largest, values by {:.2g}{}{}, masks in {} "
      "positions (ties may explain {})",
      relative_loss(), relative_value(), parameter.empty() ? "" : " in ", parameter, positions,
      positions_allowed);
}

void compare_models(const Module& model, const Module& reference, ModelDifferences& d) {
  int64_t positions = 0, nnz = 0, unit = d.unit;
  for (const ParameterPtr& parameter : model.parameters()) {
    const ParameterPtr other = reference.parameter(parameter->name());
    const Positions here = parameter->pattern()->positions();
    const Positions there = other->pattern()->positions();
    const Array<int32_t> places = places_in(there, here);
    const Tensor values = parameter->compacted(parameter->values());
    const Tensor expected = other->compacted(other->values());
    int64_t common = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] < 0) continue;
      ++common;
      note_value(values.data()[i], expected.data()[places[i]], parameter->name(), d);
    }
    positions += here.count() + there.count() - 2 * common;
    if (!other->pattern()->is_dense()) nnz += there.count();
    unit = std::max(unit, parameter->pattern()->layout().pattern_shape().divisors().numel());
  }
  if (positions < d.positions) return;
  d.positions = positions;
  d.positions_allowed =
      std::max(2 * unit, static_cast<int64_t>(kVerifyTies * static_cast<double>(nnz)));
}

Gradients gradients_of(const Module& model) {
  Gradients gradients;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (!parameter->has_gradient()) continue;
    std::vector<float>& dense = gradients[parameter->name()];
    dense.resize(static_cast<size_t>(parameter->numel()));
    const Tensor elements = parameter->compacted(parameter->gradient());
    const float* next = elements.data();
    parameter->pattern()->positions().for_each(
        [&](int64_t flat) { dense[static_cast<size_t>(flat)] = *next++; });
  }
  return gradients;
}

namespace {

double largest_of(const Gradients& gradients) {
  double largest = 0.0;
  for (const auto& [name, values] : gradients) {
    for (const float value : values) largest = std::max(largest, std::abs(double{value}));
  }
  return largest;
}

// Places of both parameters' elements at the flat indices that `is_rounding` accepts.
template <class IsRounding>
std::vector<std::pair<size_t, size_t>> common_places(const Parameter& parameter,
                                                     const Parameter& other,
                                                     const IsRounding& is_rounding) {
  const Positions here = parameter.pattern()->positions(), there = other.pattern()->positions();
  const Array<int32_t> places = places_in(there, here);
  std::vector<std::pair<size_t, size_t>> common;
  size_t place = 0;
  here.for_each([&](int64_t flat) {
    const int32_t to = places[place++];
    if (to >= 0 && is_rounding(static_cast<size_t>(flat))) {
      common.emplace_back(place - 1, static_cast<size_t>(to));
    }
  });
  return common;
}

void take_elements(const Parameter& parameter, Parameter& other,
                   const std::vector<std::pair<size_t, size_t>>& places) {
  const auto taken = [&](const Tensor& from, const Tensor& into) {
    const Tensor source = parameter.compacted(from);
    Tensor target = other.compacted(into).clone();
    for (const auto& [here, there] : places) target.mutable_data()[there] = source.data()[here];
    return target;
  };
  other.assign_elements(taken(parameter.values(), other.values()));
  for (const auto& [name, slot] : parameter.slots()) {
    const auto own = other.slots().find(name);
    if (slot.requires_dense || own == other.slots().end()) continue;
    own->second.values = other.expanded(taken(slot.values, own->second.values));
  }
}

}  // namespace

void settle_rounding(const Module& model, const Gradients& gradients, const Module& reference,
                     const Gradients& expected, std::map<std::string, double>& roundings) {
  const double most = kVerifyRounding * largest_of(expected);
  for (const ParameterPtr& parameter : model.parameters()) {
    const auto found = gradients.find(parameter->name()), other = expected.find(parameter->name());
    if (found == gradients.end() || other == expected.end()) continue;
    const std::vector<float>&here = found->second, &there = other->second;
    double& rounding = roundings[parameter->name()];
    for (size_t i = 0; i < here.size(); ++i) {
      rounding = std::max(rounding, std::abs(double{here[i]} - double{there[i]}));
    }
    const double bound = 4.0 * std::min(rounding, most);
    const ParameterPtr own = reference.parameter(parameter->name());
    const auto places = common_places(*parameter, *own, [&](size_t at) {
      const double size = std::max(std::abs(double{here[at]}), std::abs(double{there[at]}));
      return size > 0.0 && size <= bound;
    });
    if (!places.empty()) take_elements(*parameter, *own, places);
  }
}

Verification::Verification(const Config& config, int64_t steps,
                           const std::optional<CheckpointFile>& checkpoint)
    : steps_(steps) {
  Config masked = config.clone();
  const bool has_weights = sparsifies_weights(masked);
  if (masked.get("sparsity").is_null() && !has_weights) {
    throw ConfigError(
        "--verify compares the layouts of sparse parameters, and the configuration has no "
        "`sparsity`, and no weights under `sparsifiers`");
  }
  require_comparable(masked.get("sparsifiers"));
  set_sparsity_layout(masked, "masked");
  if (has_weights) set_sparsify_layout(masked, "masked");
  reference_ = build_experiment(masked, checkpoint ? Start::FromCheckpoint : Start::Fresh);
  if (checkpoint) {  // the run itself has been judged
    reference_->load_state_dict(checkpoint->read().state, ChangedOrigins::Accepted);
  }
  reference_->model->train();
}

void Verification::watch(Experiment& run) {
  run.optimizer->register_step_pre_hook([this, &run](Optimizer&) {
    if (reference_ != nullptr) gradients_ = gradients_of(*run.model);
  });
}

void Verification::compare_step(const Experiment& run, double loss) {
  if (reference_ == nullptr) return;
  const double expected = run_batches(*reference_).mean_loss();
  const Gradients gradients = gradients_.empty() ? Gradients() : gradients_of(*reference_->model);
  step_optimizers(*reference_);
  reference_->optimizer->zero_grad();
  settle_rounding(*run.model, gradients_, *reference_->model, gradients, roundings_);
  differences_.largest_loss = std::max(differences_.largest_loss, std::abs(expected));
  const double difference = std::abs(loss - expected);
  // A difference that is NaN is the largest, and stays.
  if (!(difference <= differences_.loss) && !std::isnan(differences_.loss)) {
    differences_.loss = difference;
  }
  for (const ParameterPtr& parameter : run.model->parameters()) {
    if (run.sparsity == nullptr) continue;
    differences_.unit =
        std::max(differences_.unit, run.sparsity->pattern(*parameter).divisors().numel());
  }
  compare_models(*run.model, *reference_->model, differences_);
  // Behind a tie the runs train different positions, and go apart.
  if (++done_ == steps_ || differences_.positions > 0) finish();
}

void Verification::finish() {
  if (reference_ == nullptr || done_ == 0) return;
  reference_.reset();
  const std::string found = fmt::format("verified {} step{} against layout masked: {}", done_,
                                        done_ == 1 ? "" : "s", differences_.to_string());
  if (!differences_.is_within_tolerance()) {
    throw Error(found + "; this is more than rounding explains (" +
                "0.001 of the largest loss and value)");
  }
  log_info(found + (done_ < steps_ && differences_.positions > 0
                        ? "; the runs differ from there on, and are not compared further"
                        : ""));
}

}  // namespace lacuna
