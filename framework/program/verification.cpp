#include "lacuna/framework/program/verification.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/names.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/program/layout_config.hpp"
#include "lacuna/framework/train/training_step.h"

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
        "--verify cannot compare runs with random_fraction: what it draws depends on every bit of "
        "the tensor, and other layouts round otherwise");
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
      "positions ({} can be ties)",
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

Verification::Verification(const Config& config, int64_t steps,
                           const std::optional<CheckpointFile>& checkpoint)
    : steps_(steps) {
  Config masked = config.clone();
  const bool has_weights = sparsifies_weights(masked);
  if (masked.get("sparsity").is_null() && !has_weights) {
    throw ConfigError(
        "--verify compares the layouts of sparse parameters, and the configuration has no "
        "`sparsity`, and no weights under `sparsify`");
  }
  require_comparable(masked.get("sparsify"));
  set_sparsity_layout(masked, "masked");
  if (has_weights) set_sparsify_layout(masked, "masked");
  reference_ = build_experiment(masked, checkpoint ? Start::FromCheckpoint : Start::Fresh);
  if (checkpoint) {  // the run itself has been judged
    reference_->load_state_dict(checkpoint->read().state, ChangedOrigins::Accepted);
  }
  reference_->model->train();
}

void Verification::compare_step(const Experiment& run, double loss) {
  if (reference_ == nullptr) return;
  const double expected = run_batches(*reference_).mean_loss();
  reference_->optimizer->step();
  reference_->optimizer->zero_grad();
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
    throw Error(found + "; that is more than rounding explains (" +
                "0.001 of the largest loss and value)");
  }
  log_info(found + (done_ < steps_ && differences_.positions > 0
                        ? "; the runs go apart from there, and are not compared further"
                        : ""));
}

}  // namespace lacuna
