#include "lacuna/sparsity/one_shot_pruning.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/sparsity/calibration/calibration_run.hpp"
#include "lacuna/sparsity/calibration/prune_layer.hpp"
#include "lacuna/sparsity/options/group_count.hpp"

namespace lacuna {
namespace {

// What would have no effect. Not asked for, so that no message names it as a known key.
void refuse_init_method(const Config& entry, OneShotMethod method) {
  const Config given = entry.peek("init_method");
  if (given.is_null()) return;
  given.error(std::string(to_string(method)) +
              " takes no `init_method`: it prunes the weights that there are");
}

OneShotGranularity read_granularity(const Config& entry, const PatternShape& pattern,
                                    OneShotGranularity fallback) {
  if (pattern.is_structured()) {
    if (entry.has("granularity")) {
      entry.get("granularity").error("a pattern determines what competes; leave `granularity` out");
    }
    return fallback;
  }
  const auto name = entry.get<std::string>("granularity", to_string(fallback));
  if (name == "layer") return OneShotGranularity::Layer;
  if (name == "row") return OneShotGranularity::Row;
  entry.get("granularity").fail("'layer' or 'row'");
}

double read_damping(const Config& entry, const char* key, double fallback) {
  return require_range(entry, key, entry.get<double>(key, fallback), 0.0, 1e6);
}

// A number, or "auto".
double read_automatic_damping(const Config& entry, const char* key, double fallback) {
  constexpr double kAutomatic = OneShotOptions::kAutomaticDamping;
  const Config given = entry.get(key);
  if (given.is_null() && fallback == kAutomatic) {
    entry.get<std::string>(key, "auto");  // for the resolved configuration
    return kAutomatic;
  }
  if (given.is_null() || given.is_number()) return read_damping(entry, key, fallback);
  if (!given.is_scalar() || given.text() != "auto") given.fail("a number from 0, or auto");
  return kAutomatic;
}

}  // namespace

OneShotPruningOptions OneShotPruningOptions::from_config(const Config& entry, OneShotMethod method,
                                                         uint64_t seed) {
  refuse_init_method(entry, method);
  OneShotPruningOptions options{
      .common = SparsityOptions::from_config(entry, seed, FirstMask::Present),
      .pruning = OneShotOptions::defaults(method)};
  OneShotOptions& p = options.pruning;
  p.granularity = read_granularity(entry, options.common.pattern, p.granularity);
  if (method == OneShotMethod::SparseGpt || method == OneShotMethod::Admm) {
    p.damping = read_automatic_damping(entry, "damping", p.damping);
  }
  if (method == OneShotMethod::SparseGpt) {
    p.block = require_at_least(entry, "block", entry.get<int64_t>("block", p.block), 1);
  }
  if (method == OneShotMethod::Admm) {
    const int64_t rounds =
        require_at_least(entry, "rounds", entry.get<int64_t>("rounds", p.rounds), 1);
    if (rounds > 100'000) entry.get("rounds").fail("at most 100000 rounds");
    p.rounds = static_cast<int>(rounds);
    p.gradual_rounds = p.rounds * 3 / 4;  // 15 of 20, as its authors have it
  }
  p.least_squares = entry.get<bool>("least_squares", false);
  if (p.least_squares) {
    p.least_squares_damping = read_damping(entry, "least_squares_damping", p.least_squares_damping);
  }
  options.calibration = CalibrationOptions::from_config(entry.get("calibration"));
  return options;
}

OneShotPruning::OneShotPruning(OneShotPruningOptions given)
    : SparsityAlgorithm(std::move(given.common)),
      pruning_(std::move(given.pruning)),
      calibration_(given.calibration) {
  const SparsityTarget& target = options().sparsity;
  const std::string name(type());
  options().require_no_updates(name);
  if (!target.is_constant()) {
    throw ConfigError(name +
                      ": the sparsity must be a constant, because it prunes only once; to prune in "
                      "steps, list it several times in `phases`");
  }
  if (!target.is_below_one()) {
    throw ConfigError(name + ": sparsity must be in [0, 1), found " +
                      target.schedule().config().text());
  }
  if (!divides(options().groups)) return;
  if (pruning_.method == OneShotMethod::SparseGpt ||
      pruning_.granularity == OneShotGranularity::Row) {
    throw ConfigError(name +
                      ": balance_in_groups and balance_out_groups need granularity: layer, and "
                      "work with magnitude, wanda and admm only");
  }
}

void OneShotPruning::calibrate_on(const CalibrationData& data) {
  run_ = calibration_run(data, calibration_, type());
}

void OneShotPruning::adopt(Module& module, std::vector<ParameterPtr> parameters,
                           MaskSource source) {
  for (const ParameterPtr& p : parameters) {
    const bool has_inputs = p->use == WeightUse::Linear || p->use == WeightUse::Convolution;
    if (p->shape().rank() >= 2 && (has_inputs || !needs_inputs())) continue;
    throw ConfigError(fmt::format(
        "{} does not fit '{}' of shape {}: it prunes {}; leave it out of param_filter{}", type(),
        p->name(), p->shape().to_string(),
        needs_inputs() ? "weights of linear and convolution layers, by their inputs"
                       : "parameters of two dimensions or more",
        p->shape().rank() >= 2 ? ", or give it to magnitude in a list of entries" : ""));
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
      throw ConfigError(
          fmt::format("{}: the mask of '{}' does not have the pattern {}, so no more whole units "
                      "can be pruned; start from a dense weight",
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

void prune_waiting(SparsityAlgorithm& algorithm) {
  for (OneShotPruning* one : one_shot_parts(algorithm)) {
    if (one->is_waiting()) one->prune();
  }
}

// Those that have not pruned yet, over all their weights in the order of the forward pass.
class OneShotPruning::Pass {
 public:
  Pass(Module& module, std::vector<OneShotPruning*> waiting) : module_(module) {
    for (OneShotPruning* one : waiting) {
      one->require_work();
      for (SparseWeight& weight : one->weights()) {
        places_[weight.pointer().get()] = {one, &weight};
        (one->run_ ? seen_ : unseen_).push_back(weight.pointer());
      }
      if (run_ == nullptr && one->run_) run_ = &one->run_;
    }
  }

  void run() {
    std::vector<CalibratedLayer> layers;
    if (run_ != nullptr) layers = layers_in_order(module_, *run_, seen_);
    std::vector<ParameterPtr> rest = unmet(layers);
    std::vector<InputGram> grams;
    const OneShotPruning* owner = nullptr;
    for (const CalibratedLayer& layer : layers) {
      const Place place = places_.at(layer.weight.get());
      if (!layer.shares_input || place.owner != owner) {
        grams.clear();  // one layer's at a time
        grams = collect_inputs(module_, place.owner->run_, layer);
      }
      owner = place.owner;
      place.owner->prune_weight(*place.weight, grams);
    }
    for (const ParameterPtr& parameter : rest) {
      const Place place = places_.at(parameter.get());
      place.owner->prune_weight(*place.weight,
                                {InputGram::of_independent(matrix_columns(parameter->shape()))});
    }
  }

 private:
  struct Place {
    OneShotPruning* owner = nullptr;
    SparseWeight* weight = nullptr;
  };

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
        "{}: the forward pass of the model never multiplies by {}, so the inputs are unknown; "
        "exclude such weights with param_filter, or prune them by magnitude in an entry of their "
        "own",
        type, join(refused, ", ")));
  }

  Module& module_;
  const CalibrationRun* run_ = nullptr;
  std::map<const Parameter*, Place> places_;
  std::vector<ParameterPtr> seen_, unseen_;  // of those with calibration, and without
};

void OneShotPruning::prune() {
  if (module_ == nullptr || weights().empty()) {
    throw StateError(std::string(type()) + " must be applied to a model before it prunes");
  }
  if (has_pruned_) return;
  const AtWork at_work(*this);
  SparsityAlgorithm* whole = this;
  while (whole->outer() != nullptr) whole = whole->outer();
  std::vector<OneShotPruning*> waiting;
  for (OneShotPruning* one : one_shot_parts(*whole)) {
    if (one->is_waiting()) waiting.push_back(one);
  }
  Pass(*module_, waiting).run();
  for (OneShotPruning* one : waiting) {
    one->has_pruned_ = true;
    one->is_reported_ = false;
  }
}

// Something to learn inputs from where they are needed, and something to prune.
void OneShotPruning::require_work() {
  pruned_.clear();
  if (needs_inputs() && !run_) {
    throw StateError(
        fmt::format("{} prunes by the inputs of layers, and needs examples of them: call "
                    "calibrate_with with a function that runs the given module on some batches, "
                    "before the first training step or prune()",
                    type()));
  }
  for (const SparseWeight& weight : weights()) {
    if (weight.target_nnz() <= weight.nnz()) return;
  }
  const SparseWeight& first = weights().front();
  throw ConfigError(
      fmt::format("{}: '{}' already has only {}, below the target of {}; pruned weights stay "
                  "pruned, so give a higher sparsity",
                  type(), first.name(), plural(first.nnz(), "nonzero"), first.target_nnz()));
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

// It prunes before the step, whose beginning has cleared what was reported before.
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
    planned.changes = {{0, planned.final_nnz}};  // before the first step's forward pass
  }
  if (prunes || targets.empty()) return;
  const PlannedParameter& first = forecast.parameters.front();
  throw ConfigError(
      fmt::format("{}: '{}' has only {} before it, below the target of {}; pruned weights stay "
                  "pruned, so give a higher sparsity",
                  type(), first.parameter, plural(first.initial_nnz, "nonzero"), targets.front()));
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
