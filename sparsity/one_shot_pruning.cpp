#include "lacuna/sparsity/one_shot_pruning.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/calibration/layer_losses.hpp"
#include "lacuna/sparsity/calibration/prune_layer.hpp"

namespace lacuna {
OneShotPruning::OneShotPruning(OneShotPruningOptions given)
    : SparsityAlgorithm(std::move(given.common)),
      pruning_(std::move(given.pruning)),
      calibration_(given.calibration),
      to_(given.to) {
  const SparsityTarget& target = options().sparsity;
  const std::string name(type());
  options().require_no_updates(name);
  if (!target.is_constant()) {
    throw ConfigError(name +
                      ": the sparsity must be a constant: it prunes once; several of it in "
                      "`phases` prune step by step");
  }
  if (!target.is_below_one()) {
    throw ConfigError(name + ": sparsity must be in [0, 1), found " +
                      target.schedule().config().text());
  }
  if (to_ && options().distribution.kind != Distribution::Kind::Measured) {
    throw ConfigError(name + ": a budget `to` is for distribution: measured alone");
  }
  if (options().groups.count == 1) return;
  if (pruning_.method == OneShotMethod::SparseGpt ||
      pruning_.granularity == OneShotGranularity::Row) {
    throw ConfigError(name +
                      ": balance_in_groups and balance_out_groups go with magnitude, admm "
                      "and wanda of granularity layer alone");
  }
}

void OneShotPruning::calibrate_on(const CalibrationData& data) {
  CalibrationOptions wanted = calibration_;
  if (wanted.examples.value_or(1) > data.examples) {
    throw ConfigError(fmt::format(
        "{}: calibration.examples is {}, and the training data has {}; give at most that many",
        type(), wanted.examples.value_or(1), data.examples));
  }
  wanted.examples =
      wanted.examples.value_or(std::min(data.examples, CalibrationOptions::kDefaultExamples));
  run_ = [run = data.run, wanted](Module& model) { run(model, wanted); };
  loss_ = nullptr;
  if (data.loss) loss_ = [loss = data.loss, wanted](Module& model) { return loss(model, wanted); };
}

void OneShotPruning::adopt(Module& module, std::vector<ParameterPtr> parameters,
                           MaskSource source) {
  for (const ParameterPtr& p : parameters) {
    const bool has_inputs = p->use == WeightUse::Linear || p->use == WeightUse::Convolution;
    if (p->shape().rank() >= 2 && (has_inputs || !needs_inputs())) continue;
    throw ConfigError(fmt::format(
        "{} does not fit '{}' of shape {}: it prunes {}; leave it out of param_filter, or give it "
        "to {} in a list of entries",
        type(), p->name(), p->shape().to_string(),
        needs_inputs() ? "weights of linear and convolution layers, by their inputs"
                       : "parameters of two dimensions or more",
        p->shape().rank() >= 2 ? "magnitude" : "static"));
  }
  take_charge(std::move(parameters));
  module_ = &module;
  keep_hook(module.register_forward_pre_hook([this](Module& model) {
    if (grad_enabled() && model.training()) prune();
  }));
  if (source == MaskSource::Loaded) return start_masks(source);
  for (SparseWeight& weight : weights()) {
    const MaskSet mask = weight.mask();
    const PatternShape& pattern = weight.selector().pattern();
    if (weight.selector().fit(mask) != MaskSelector::Fit::None) {
      install(weight, mask);  // in its layout
    } else if (pattern.unit_size() > 1) {
      throw ConfigError(fmt::format(
          "{}: the mask that '{}' has is not of pattern {}, so that no more can be pruned of it in "
          "whole units; begin with a dense weight",
          type(), weight.name(), pattern.description()));
    }
  }
}

std::vector<OneShotPruning*> one_shot_parts(SparsityAlgorithm& algorithm) {
  if (auto* own = dynamic_cast<OneShotPruning*>(&algorithm)) return {own};
  std::vector<OneShotPruning*> all;
  for (SparsityAlgorithm* part : algorithm.parts()) {
    for (OneShotPruning* found : one_shot_parts(*part)) all.push_back(found);
  }
  return all;
}

// Those that have not pruned yet, over all their weights in the order of the forward pass.
class OneShotPruning::Pass {
 public:
  Pass(Module& module, std::vector<OneShotPruning*> waiting)
      : module_(module), waiting_(std::move(waiting)) {
    for (OneShotPruning* one : waiting_) {
      one->require_examples();
      for (SparseWeight& weight : one->weights()) {
        places_[weight.pointer().get()] = {one, &weight};
        (one->run_ ? seen_ : unseen_).push_back(weight.pointer());
      }
      if (run_ == nullptr && one->run_) run_ = &one->run_;
    }
  }

  void run() {
    if (run_ != nullptr) layers_ = layers_in_order(module_, *run_, seen_);
    rest_ = unmet(layers_);
    std::map<std::string, LossTable::Row> rows;
    for_each([](const OneShotPruning& owner) { return owner.awaits_losses(); },
             [&](const Place& place, const std::vector<InputGram>& grams) {
               rows[place.weight->name()] = place.owner->measure(*place.weight, grams);
             });
    for (OneShotPruning* one : waiting_) {
      if (one->awaits_losses()) one->take_measured(rows);
      one->require_work();
    }
    for_each([](const OneShotPruning&) { return true; },
             [](const Place& place, const std::vector<InputGram>& grams) {
               place.owner->prune_weight(*place.weight, grams);
             });
  }

 private:
  struct Place {
    OneShotPruning* owner = nullptr;
    SparseWeight* weight = nullptr;
  };

  // Calls take(place, grams) for the weights whose owners are wanted, in the order of the forward
  // pass, each with the inputs that the model gives it then.
  template <class Wanted, class Take>
  void for_each(const Wanted& wanted, const Take& take) {
    std::vector<InputGram> grams;
    const OneShotPruning* owner = nullptr;
    for (const CalibratedLayer& layer : layers_) {
      const Place place = places_.at(layer.weight.get());
      if (!wanted(*place.owner)) {
        owner = nullptr;
        continue;
      }
      if (!layer.shares_input || place.owner != owner) {
        grams.clear();  // one layer's at a time
        grams = collect_inputs(module_, place.owner->run_, layer);
      }
      owner = place.owner;
      take(place, grams);
    }
    for (const ParameterPtr& parameter : rest_) {
      const Place place = places_.at(parameter.get());
      if (!wanted(*place.owner)) continue;
      take(place, std::vector{InputGram::of_independent(matrix_columns(parameter->shape()))});
    }
  }

  // Weights that no forward pass multiplies with, or has been asked about.
  std::vector<ParameterPtr> unmet(const std::vector<CalibratedLayer>& layers) const {
    std::vector<ParameterPtr> rest = unseen_;
    std::vector<std::string> refused;
    std::string type;
    for (const ParameterPtr& parameter : seen_) {
      if (std::ranges::find(layers, parameter, &CalibratedLayer::weight) != layers.end()) continue;
      rest.push_back(parameter);
      const OneShotPruning& owner = *places_.at(parameter.get()).owner;
      if (!owner.needs_inputs()) continue;
      refused.push_back("'" + parameter->name() + "'");
      type = owner.type();
    }
    if (refused.empty()) return rest;
    throw ConfigError(fmt::format(
        "{}: the model's forward pass never multiplies with {}, so that nothing is known of their "
        "inputs; leave them out of param_filter, or give them to magnitude in a list of entries",
        type, join(refused, ", ")));
  }

  Module& module_;
  std::vector<OneShotPruning*> waiting_;
  std::vector<CalibratedLayer> layers_;
  std::vector<ParameterPtr> rest_;
  const CalibrationRun* run_ = nullptr;
  std::map<const Parameter*, Place> places_;
  std::vector<ParameterPtr> seen_, unseen_;  // of those with calibration, and without
};

void OneShotPruning::prune() {
  if (module_ == nullptr || weights().empty()) {
    throw StateError(std::string(type()) + " must be applied to a model before it prunes");
  }
  if (has_pruned_) return;
  SparsityAlgorithm* whole = this;
  while (whole->outer() != nullptr) whole = whole->outer();
  std::vector<OneShotPruning*> waiting;
  for (OneShotPruning* one : one_shot_parts(*whole)) {
    if (!one->has_pruned_ && !one->weights().empty()) waiting.push_back(one);
  }
  Pass(*module_, waiting).run();
  for (OneShotPruning* one : waiting) {
    one->has_pruned_ = true;
    one->is_reported_ = false;
  }
}

// Something to learn inputs and losses from where they are needed.
void OneShotPruning::require_examples() {
  pruned_.clear();
  if (needs_inputs() && !run_) {
    throw StateError(fmt::format(
        "{} prunes by the inputs of layers, and has no examples to learn them from: call "
        "calibrate_with with a function that runs the module it is given on some batches, before "
        "the first training step or prune()",
        type()));
  }
  if (!awaits_losses() || loss_) return;
  throw StateError(fmt::format(
      "{}: a measured distribution needs the loss on the examples: give calibrate_with a function "
      "that computes it too",
      type()));
}

// Something to prune.
void OneShotPruning::require_work() {
  for (const SparseWeight& weight : weights()) {
    if (weight.target_nnz() <= weight.nnz()) return;
  }
  const SparseWeight& first = weights().front();
  throw ConfigError(fmt::format(
      "{}: '{}' has {} nonzeros already, and {} are asked for; what is pruned stays pruned, so "
      "give a higher sparsity",
      type(), first.name(), first.nnz(), first.target_nnz()));
}

bool OneShotPruning::awaits_losses() const {
  return options().distribution.kind == Distribution::Kind::Measured &&
         options().distribution.losses == nullptr;
}

LossTable::Row OneShotPruning::measure(SparseWeight& weight, const std::vector<InputGram>& grams) {
  const auto loss = [this] { return loss_(*module_); };
  if (!unpruned_loss_) unpruned_loss_ = finite_loss(loss, type(), "before pruning");
  return losses_of_layer(weight.parameter(), grams, weight.selector(), pruning_,
                         options().distribution.levels, *unpruned_loss_, loss);
}

std::vector<double> OneShotPruning::densities_by(const LossTable& losses) {
  if (!to_) return {};
  std::vector<const Parameter*> own;
  for (const SparseWeight& weight : weights()) own.push_back(&weight.parameter());
  budgeted_ = densities_within(*to_, own, losses, layouts());
  return budgeted_->densities;
}

void OneShotPruning::take_measured(const std::map<std::string, LossTable::Row>& rows) {
  LossTable table{.loss = *unpruned_loss_, .rows = {}};
  for (const SparseWeight& weight : weights()) table.rows.push_back(rows.at(weight.name()));
  measured_ = std::move(table);
  take_losses(*measured_);
}

// Of a mask that has fewer than the target, all.
int64_t OneShotPruning::count_to_keep(const SparseWeight& weight, const MaskSet& present) const {
  const int64_t unit = weight.selector().pattern().unit_size() * weight.selector().groups().count();
  return std::min(weight.target_nnz(), present.count() / unit * unit);
}

void OneShotPruning::bring_to_grid(const std::set<std::string>& names, GridClip clip,
                                   bool rounds_to_nearest) {
  on_grid_ = names;
  grid_pruning_ = pruning_;
  grid_pruning_.grid = clip;
  grid_pruning_.rounds_to_nearest = rounds_to_nearest;
}

void OneShotPruning::prune_weight(SparseWeight& weight, const std::vector<InputGram>& grams) {
  const MaskSet present = weight.mask();
  const bool goes_on_grid = on_grid_.contains(weight.name());
  const PrunedWeight pruned =
      prune_layer(weight.name(), weight.parameter().to_dense(), grams, weight.selector(),
                  count_to_keep(weight, present), present, goes_on_grid ? grid_pruning_ : pruning_);
  if (goes_on_grid) grid_scales_[weight.name()] = pruned.grid_scales;
  MaskUpdate update = install(weight, pruned.mask, &present, &pruned.weight);
  update.relative_error = pruned.relative_error;
  update.messages = pruned.messages;
  report(update);
  pruned_.push_back(std::move(update));
}

// The step that it pruned in has cleared what was reported before.
void OneShotPruning::update(Optimizer&) {
  count_step();
  if (is_reported_) return;
  is_reported_ = true;
  if (!last_update().empty()) return;
  for (const MaskUpdate& update : pruned_) report(update);
}

void OneShotPruning::forecast(Forecast& forecast) const {
  const std::vector<int64_t> targets = options().targets_at(0, 0, forecast.shapes());
  bool prunes = false;
  for (size_t i = 0; i < targets.size(); ++i) {
    PlannedParameter& planned = forecast.parameters[i];
    prunes = prunes || targets[i] <= planned.initial_nnz;
    planned.final_nnz = std::min(planned.initial_nnz, targets[i]);
    planned.update_steps = {1};
  }
  if (prunes || targets.empty()) return;
  const PlannedParameter& first = forecast.parameters.front();
  throw ConfigError(fmt::format(
      "{}: '{}' has {} nonzeros before it, and {} are asked for; what is pruned stays pruned, so "
      "give a higher sparsity",
      type(), first.parameter, first.initial_nnz, targets.front()));
}

StateDict OneShotPruning::state_dict() const {
  StateDict state = SparsityAlgorithm::state_dict();
  state.set("is_pruned", static_cast<int64_t>(has_pruned_ ? 1 : 0));
  return state;
}

void OneShotPruning::load_state_dict(const StateDict& state) {
  SparsityAlgorithm::load_state_dict(state);
  has_pruned_ = state.count("is_pruned", 1) == 1;
}

}  // namespace lacuna
