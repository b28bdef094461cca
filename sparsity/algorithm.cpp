#include "lacuna/sparsity/algorithm.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "lacuna/framework/core/buffer.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/profile.hpp"
#include "lacuna/sparsity/weights/full_groups.hpp"
#include "lacuna/sparsity/weights/target_checks.hpp"

namespace lacuna {

SparsityAlgorithm::SparsityAlgorithm(SparsityOptions options, PatternLifetime lifetime)
    : options_(options.checked()), layouts_(options_.layout, options_.pattern, lifetime) {}

SparsityAlgorithm::~SparsityAlgorithm() {
  release_weights(false);
  for (SparsityAlgorithm* part : parts_) part->outer_ = nullptr;  // it may live on
  // The whole may live on: its constructor throws, and has destroyed its members before its base.
  if (outer_ != nullptr) std::erase(outer_->parts_, this);
}

bool SparsityAlgorithm::is_at_work() const {
  return at_work_ > 0 || std::ranges::any_of(parts_, &SparsityAlgorithm::is_at_work);
}

void SparsityAlgorithm::require_idle(std::string_view call) const {
  const SparsityAlgorithm* whole = this;
  while (whole->outer_ != nullptr) whole = whole->outer_;
  if (!whole->is_at_work()) return;
  throw StateError(
      fmt::format("sparsity algorithm '{}': {} was called while it updates masks; "
                  "call it after the optimizer's step",
                  type(), call));
}

void SparsityAlgorithm::release() {
  require_idle("release");
  release_weights(false);
}

void SparsityAlgorithm::release_optimizer() {
  require_idle("release_optimizer");
  for (HookHandle& hook : step_hooks_) hook.remove();
  step_hooks_.clear();
}

void SparsityAlgorithm::release_weights(bool loaded) {
  for (std::vector<HookHandle>* hooks : {&hooks_, &step_hooks_}) {
    for (HookHandle& hook : *hooks) hook.remove();
    hooks->clear();
  }
  for (SparseWeight& weight : weights_) {
    if (loaded && weight.master() != nullptr) weight.master()->keep_part();
  }
  weights_.clear();
  parameters_.clear();
  for (SparsityAlgorithm* part : parts_) part->release_weights(loaded);
}

bool SparsityAlgorithm::makes_sparse(const ParameterPtr& parameter) const {
  const auto makes = [&](const SparsityAlgorithm* part) {
    const auto& own = part->parameters_;
    return std::ranges::find(own, parameter) != own.end() && part->makes_sparse(parameter);
  };
  return parts_.empty() || std::ranges::any_of(parts_, makes);
}

std::vector<ParameterPtr> SparsityAlgorithm::sparse_parameters() const {
  std::vector<ParameterPtr> sparse;
  std::ranges::copy_if(parameters_, std::back_inserter(sparse),
                       [&](const ParameterPtr& parameter) { return makes_sparse(parameter); });
  return sparse;
}

std::vector<std::string> SparsityAlgorithm::frozen_choices(
    const std::vector<ParameterPtr>& parameters) const {
  const auto chooses = [](const SparsityAlgorithm& one, const Parameter& parameter,
                          const auto& self) -> bool {
    if (one.parts_.empty()) return one.filter().matches_but_for_freezing(parameter);
    return std::ranges::any_of(
        one.parts_, [&](const SparsityAlgorithm* part) { return self(*part, parameter, self); });
  };
  std::vector<std::string> names;
  for (const ParameterPtr& parameter : parameters) {
    if (chooses(*this, *parameter, chooses)) names.push_back(parameter->name());
  }
  return names;
}

void SparsityAlgorithm::set_sparsity(SparsityTarget sparsity) {
  require_settable(sparsity);
  SparsityOptions changed = options_;
  changed.sparsity = std::move(sparsity);
  set_options(changed);
}

void SparsityAlgorithm::require_settable(const SparsityTarget&) const {
  throw StateError("sparsity algorithm '" + std::string(type()) +
                   "' keeps the sparsity that it was made with" +
                   (parts_.empty() ? "" : "; set that of its parts"));
}

bool SparsityAlgorithm::begins_sparse() const {
  const SparsityTarget& target = options_.sparsity;
  return options_.pattern.is_nm() || begins_pruned(target);
}

void SparsityAlgorithm::apply(Module& module) {
  if (!parameters_.empty()) {
    throw StateError("sparsity algorithm '" + std::string(type()) +
                     "' has been applied to a model already");
  }
  // Parts choose for themselves among all.
  adopt(module, parts_.empty() ? filter().select(module.parameters()) : module.parameters(),
        MaskSource::Made);
}

void SparsityAlgorithm::adopt(Module&, std::vector<ParameterPtr> parameters, MaskSource source) {
  take_charge(std::move(parameters));
  start_masks(source);
}

void SparsityAlgorithm::take_charge(std::vector<ParameterPtr> parameters) {
  std::deque<SparseWeight> weights;  // all of them, or none
  for (const ParameterPtr& parameter : parameters) {
    options_.layout.require_fit(*parameter);
    weights.emplace_back(parameter, type(), options_.groups, options_.pattern);
  }
  weights_ = std::move(weights);
  parameters_ = std::move(parameters);
  refresh_targets();
}

void SparsityAlgorithm::start_masks(MaskSource source) {
  const AtWork at_work(*this);
  const bool inherits = source == MaskSource::Made && options_.init_method.inherits();
  const bool is_loaded = source == MaskSource::Loaded;
  if (!is_loaded) require_values_fit(weights_);
  for (SparseWeight& weight : weights_) {
    if (is_loaded && !weight.parameter().pattern()->is_dense()) {
      // A checkpoint's pattern stays in the layout that it was saved in.
      weight.set_lifetime(layouts_.lifetime());
      continue;
    }
    try {
      set_mask(weight, is_loaded ? weight.mask()
                                 : initial_mask(weight, inherits ? MaskSource::Inherited : source));
    } catch (const std::bad_alloc& error) {
      throw MemoryError(with_nonzeros(weight) + ", its mask: " + describe(error));
    }
  }
  if (source != MaskSource::Inherited) forget_updates();
}

MaskSet SparsityAlgorithm::initial_mask(const SparseWeight& weight, MaskSource source) {
  const MaskSelector& selector = weight.selector();
  if (source == MaskSource::Inherited) {
    const MaskSet present = weight.mask();
    if (selector.fit(present) == MaskSelector::Fit::None) {  // of another pattern
      return selector.grow_maximum(rows_of(weight.parameter().to_dense()), weight.target_nnz(),
                                   MaskSet(weight.shape()));
    }
    if (weight.target_nnz() >= present.count()) return present;
    return selector.prune_gradually(present, weight.magnitudes().storage(), weight.target_nnz());
  }
  MaskSet made =
      options_.init_method.make({.parameter = weight.parameter(),
                                 .sparsity = static_cast<float>(weight.target_sparsity()),
                                 .nnz = weight.target_nnz(),
                                 .groups = options_.groups,
                                 .pattern = options_.pattern,
                                 .seed = options_.seed});
  if (selector.fit(made) != MaskSelector::Fit::Whole) selector.refuse(weight.name(), made);
  return made;
}

void SparsityAlgorithm::refresh_targets() {
  const AtWork at_work(*this);
  std::vector<Shape> shapes;
  for (const SparseWeight& weight : weights_) shapes.push_back(weight.shape());
  if (shapes.empty()) return;
  require_fraction(type(), options_.sparsity, step_, updates_);  // no plan has looked at own loops
  const std::vector<int64_t> nnz = options_.targets_at(step_, updates_, shapes);
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto numel = static_cast<double>(std::max<int64_t>(shapes[i].numel(), 1));
    const bool is_uniform = options_.distribution.kind == Distribution::Kind::Uniform;
    weights_[i].set_target(nnz[i], is_uniform
                                       ? options_.sparsity.sparsity_at(step_, updates_, shapes[i])
                                       : 1.0 - static_cast<double>(nnz[i]) / numel);
  }
  const double target = options_.sparsity.sparsity_at(step_, updates_, shapes.front());
  for (SparsityAlgorithm* one = this; one != nullptr; one = one->outer_) {
    one->target_hooks_.call(*this, filter().description(), target);
  }
}

void SparsityAlgorithm::set_mask(SparseWeight& weight, const MaskSet& mask,
                                 const MaskSet* present) {
  report(install(weight, mask, present));
}

MaskUpdate SparsityAlgorithm::install(SparseWeight& weight, const MaskSet& given,
                                      const MaskSet* present, const Tensor* values) {
  const AtWork at_work(*this);
  const Shape& shape = given.shape();
  if (shape.rank() > 1 && shape[0] != weight.shape()[0]) {  // of the same size: another order
    throw ShapeError(fmt::format("parameter '{}' of shape {} got a mask of shape {}", weight.name(),
                                 weight.shape().to_string(), shape.to_string()));
  }
  const MaskSet mask = given.of_shape(weight.shape());
  MasterWeight* master = weight.master();
  if (master != nullptr) master->take_part();
  if (values == nullptr && master != nullptr) values = &master->values();
  const MaskChange change =
      install_mask(weight.parameter(), mask, layouts_, {.present = present, .master = values});
  if (master != nullptr && values == &master->values()) {
    master->note_part();
  }
  const MaskUpdate update = weight.note(mask, change);
  for (SparsityAlgorithm* one = this; one != nullptr; one = one->outer_) {
    one->computed_hooks_.call(*this, weight.parameter(), update.actual_sparsity);
  }
  return update;
}

void SparsityAlgorithm::report(const MaskUpdate& update) {
  for (SparsityAlgorithm* one = this; one != nullptr; one = one->outer_) {
    one->last_update_.push_back(update);
  }
}

void SparsityAlgorithm::calibrate_on(const CalibrationData& data) {
  for (SparsityAlgorithm* part : parts_) part->calibrate_on(data);
}

void SparsityAlgorithm::apply(Optimizer& optimizer) {
  require_parameters(optimizer);
  for (const ParameterPtr& parameter : parameters_) {
    parameter->prune();  // states that exist become sparse with the same mask
  }
  step_hooks_.push_back(
      optimizer.register_step_scope_hook([this](Optimizer& o, StepScopes& scopes) {
        const AtWork at_work(*this);
        clear_updates();
        open_scopes(o, scopes);
      }));
  step_hooks_.push_back(optimizer.register_step_post_hook([this](Optimizer& o) { after_step(o); }));
}

void SparsityAlgorithm::require_parameters(const Optimizer& optimizer) const {
  if (parameters_.empty()) {
    throw StateError("sparsity algorithm '" + std::string(type()) +
                     "' must be applied to the model before the optimizer");
  }
  if (!step_hooks_.empty()) {
    throw StateError("sparsity algorithm '" + std::string(type()) +
                     "' has been applied to an optimizer already; release_optimizer() ends that");
  }
  for (const ParameterPtr& parameter : parameters_) {
    if (!parameter->trainable) {
      throw StateError("parameter '" + parameter->name() +
                       "' was frozen after sparsity algorithm '" + std::string(type()) +
                       "' had taken charge of it; freeze it before");
    }
    if (std::ranges::find(optimizer.parameters(), parameter) != optimizer.parameters().end()) {
      continue;
    }
    throw StateError("the optimizer does not train parameter '" + parameter->name() +
                     "', which sparsity algorithm '" + std::string(type()) + "' controls");
  }
}

void SparsityAlgorithm::open_scopes(Optimizer& optimizer, StepScopes& scopes) {
  const ProfileSpan span(Work::Masks);
  if (!weights_.empty()) before_step(optimizer, scopes);
  for (SparsityAlgorithm* part : parts_) part->open_scopes(optimizer, scopes);
}

void SparsityAlgorithm::after_step(Optimizer& optimizer) {
  const ProfileSpan span(Work::Masks);
  const AtWork at_work(*this);
  for (const ParameterPtr& parameter : parameters_) {
    const ProfileSpan of_it(Work::Parameter, parameter->name());
    parameter->prune();
  }
  if (autoupdate) update(optimizer);
}

void SparsityAlgorithm::clear_updates() {
  last_update_.clear();
  for (SparsityAlgorithm* part : parts_) part->clear_updates();
}

void SparsityAlgorithm::share_limits(const SparsityAlgorithm& outer) {
  layouts_.share_limits(outer.layouts_);
  for (SparsityAlgorithm* part : parts_) part->share_limits(outer);
}

void SparsityAlgorithm::forget_updates() {
  for (SparsityAlgorithm* one = this; one != nullptr; one = one->outer_) one->last_update_.clear();
}

void SparsityAlgorithm::add_part(SparsityAlgorithm& part) {
  if (part.outer_ != nullptr) std::erase(part.outer_->parts_, &part);
  part.outer_ = this;
  part.share_limits(*this);
  parts_.push_back(&part);
}

const SparseWeight* SparsityAlgorithm::find(const Parameter& parameter) const {
  for (const SparseWeight& weight : weights_) {
    if (&weight.parameter() == &parameter) return &weight;
  }
  for (const SparsityAlgorithm* part : parts_) {
    if (const SparseWeight* weight = part->find(parameter)) return weight;
  }
  return nullptr;
}

double SparsityAlgorithm::target_sparsity(const Parameter& parameter) const {
  if (const SparseWeight* weight = find(parameter)) return weight->target_sparsity();
  const auto is_it = [&](const ParameterPtr& p) { return p.get() == &parameter; };
  if (std::ranges::none_of(parameters_, is_it)) {
    throw StateError("parameter '" + parameter.name() +
                     "' does not belong to sparsity algorithm '" + std::string(type()) + "'");
  }
  return 1.0 - parameter.pattern()->density();  // no part has it now: it keeps what it has
}

PatternShape SparsityAlgorithm::pattern(const Parameter& parameter) const {
  const SparseWeight* weight = find(parameter);
  return weight == nullptr ? PatternShape() : weight->selector().pattern();
}

void SparsityAlgorithm::restore_layouts() {
  for (SparseWeight& weight : weights_) {
    // What one-shot pruning has not pruned yet may have another pattern still.
    if (weight.selector().fit(weight.mask()) == MaskSelector::Fit::None) continue;
    restore_layout(weight.parameter(), layouts_);
  }
  for (SparsityAlgorithm* part : parts_) part->restore_layouts();
}

HookHandle SparsityAlgorithm::register_target_sparsity_hook(TargetSparsityHook hook) {
  return target_hooks_.add(std::move(hook));
}

HookHandle SparsityAlgorithm::register_computed_sparsity_hook(ComputedSparsityHook hook) {
  return computed_hooks_.add(std::move(hook));
}

StateDict SparsityAlgorithm::state_dict() const {
  StateDict state;
  state.set("type", std::string(type()));
  state.set("step", step_);
  if (!parts_.empty()) return state;
  state.set("updates", updates_);
  for (const SparseWeight& weight : weights_) weight.add_to(state);
  return state;
}

void SparsityAlgorithm::load_own(const StateDict& state) {
  require_idle("load_state_dict");
  const auto& saved_type = state.get<std::string>("type");
  if (saved_type != type()) {
    throw CheckpointError("the checkpoint holds the state of sparsity algorithm '" + saved_type +
                          "', the run uses '" + std::string(type()) + "'");
  }
  step_ = state.count("step");
}

void SparsityAlgorithm::load_state_dict(const StateDict& state) {
  load_own(state);
  if (!parts_.empty()) return;
  updates_ = state.count("updates");
  for (SparseWeight& weight : weights_) weight.load(state);
}

}  // namespace lacuna
