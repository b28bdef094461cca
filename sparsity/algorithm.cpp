#include "lacuna/sparsity/algorithm.h"

#include <algorithm>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/selection.h"

namespace lacuna {

SparsityOptions SparsityOptions::from_config(const Config& entry, uint64_t seed) {
  SparsityOptions options{.sparsity = SparsityTarget::from_config(entry),
                          .init_method = InitMethod::from_config(entry.get("init_method")),
                          .param_filter = ParameterFilter::from_config(entry.get("param_filter")),
                          .groups = {},
                          .distribution = Distribution::from_config(entry.get("distribution")),
                          .seed = seed};
  const auto in = entry.optional<int64_t>("balance_in_groups");
  const auto out = entry.optional<int64_t>("balance_out_groups");
  if (in && out) {
    entry.get("balance_out_groups")
        .error("balance_in_groups and balance_out_groups are both given; give one of them");
  }
  if (in)
    options.groups = ScoreGroups::columns(require_at_least(entry, "balance_in_groups", *in, 1));
  if (out)
    options.groups = ScoreGroups::rows(require_at_least(entry, "balance_out_groups", *out, 1));
  return options;
}

namespace {

// Rows and columns (dimension 0, and all others together) that hold no set bit.
void count_dead(const Shape& shape, const BitMask& mask, MaskUpdate& record) {
  const int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  const int64_t columns = rows == 0 ? 0 : shape.numel() / rows;
  std::vector<bool> row_alive(static_cast<size_t>(rows));
  std::vector<bool> column_alive(static_cast<size_t>(columns));
  mask.for_each([&](int64_t i) {
    row_alive[static_cast<size_t>(i / columns)] = true;
    column_alive[static_cast<size_t>(i % columns)] = true;
  });
  record.dead_rows = std::ranges::count(row_alive, false);
  record.dead_columns = std::ranges::count(column_alive, false);
}

int64_t count_missing(const BitMask& mask, const BitMask& other) {
  int64_t missing = 0;
  for (size_t w = 0; w < mask.words().size(); ++w) {
    missing += std::popcount(mask.words()[w] & ~other.words()[w]);
  }
  return missing;
}

BitMask current_mask(const Parameter& parameter) {
  return parameter.pattern()->is_dense() ? BitMask::ones(parameter.numel())
                                         : parameter.pattern()->mask();
}

}  // namespace

SparsityAlgorithm::~SparsityAlgorithm() { SparsityAlgorithm::release(); }

void SparsityAlgorithm::release() {
  for (HookHandle& hook : optimizer_hooks_) hook.remove();
  for (const ParameterPtr& parameter : parameters_) parameter->sparsified_by.clear();
  optimizer_hooks_.clear();
  parameters_.clear();
  ever_active_.clear();
}

void SparsityAlgorithm::apply(Module& module) {
  if (!parameters_.empty()) {
    throw StateError("sparsity algorithm '" + std::string(type()) +
                     "' has been applied to a model already");
  }
  adopt(module, options_.param_filter.select(module.parameters()));
}

void SparsityAlgorithm::adopt(Module& module, std::vector<ParameterPtr> parameters,
                              FirstMasks first) {
  for (const ParameterPtr& parameter : parameters) {
    options_.groups.require_fit(parameter->name(), parameter->shape());
    if (!parameter->sparsified_by.empty()) {
      throw StateError("parameter '" + parameter->name() + "' is made sparse by '" +
                       parameter->sparsified_by + "' already; '" + std::string(type()) +
                       "' cannot be applied to it too");
    }
  }
  parameters_ = std::move(parameters);
  for (const ParameterPtr& parameter : parameters_) parameter->sparsified_by = type();
  refresh_targets();
  on_apply(module);
  for (const ParameterPtr& parameter : parameters_) {
    ever_active_.push_back(BitMask::zeros(parameter->numel()));
    // Moving to the mask that is there would prune states that a later load makes dense.
    if (first == FirstMasks::Keep && !parameter->pattern()->is_dense()) continue;
    set_mask(*parameter, first_mask(*parameter, first));
  }
  if (first != FirstMasks::Inherit) last_update_.clear();
}

BitMask SparsityAlgorithm::first_mask(const Parameter& parameter, FirstMasks first) {
  if (first == FirstMasks::Make) return initial_mask(parameter);
  BitMask mask = current_mask(parameter);
  if (first == FirstMasks::Keep || target_nnz(parameter) >= mask.count()) return mask;
  const GroupIndex index = groups(parameter);
  return top_k(magnitudes(parameter.to_dense().storage()), target_nnz(parameter) / index.count(),
               mask, index);
}

std::vector<PlannedParameter> SparsityAlgorithm::plan(int64_t total_steps) const {
  std::vector<PlannedParameter> planned;
  for (const ParameterPtr& parameter : parameters_) {
    const int64_t nnz = parameter->pattern()->nnz();
    planned.push_back({.parameter = parameter->name(),
                       .shape = parameter->shape(),
                       .algorithm = std::string(type()),
                       .chosen_by = options_.param_filter.description(),
                       .initial_nnz = nnz,
                       .final_nnz = nnz,
                       .update_steps = {}});
  }
  foresee(planned, total_steps);
  return planned;
}

BitMask SparsityAlgorithm::initial_mask(const Parameter& parameter) {
  return options_.init_method.make({.parameter = parameter,
                                    .sparsity = static_cast<float>(target_sparsity(parameter)),
                                    .nnz = target_nnz(parameter),
                                    .groups = options_.groups,
                                    .seed = options_.seed});
}

void SparsityAlgorithm::refresh_targets() {
  std::vector<Shape> shapes;
  for (const ParameterPtr& parameter : parameters_) shapes.push_back(parameter->shape());
  target_nnz_ =
      options_.sparsity.nnz_at(step_, updates_, shapes, options_.distribution, options_.groups);
  target_sparsity_.clear();
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto numel = static_cast<double>(std::max<int64_t>(shapes[i].numel(), 1));
    target_sparsity_.push_back(options_.distribution.kind == Distribution::Kind::Uniform
                                   ? options_.sparsity.sparsity_at(step_, updates_, shapes[i])
                                   : 1.0 - static_cast<double>(target_nnz_[i]) / numel);
  }
  if (!shapes.empty()) {
    target_hooks_.call(*this, options_.param_filter.description(),
                       options_.sparsity.sparsity_at(step_, updates_, shapes.front()));
  }
}

size_t SparsityAlgorithm::index_of(const Parameter& parameter) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].get() == &parameter) return i;
  }
  throw StateError("parameter '" + parameter.name() + "' does not belong to sparsity algorithm '" +
                   std::string(type()) + "'");
}

int64_t SparsityAlgorithm::target_nnz(const Parameter& parameter) const {
  return target_nnz_[index_of(parameter)];
}

double SparsityAlgorithm::target_sparsity(const Parameter& parameter) const {
  return target_sparsity_[index_of(parameter)];
}

void SparsityAlgorithm::apply(Optimizer& optimizer) {
  if (parameters_.empty()) {
    throw StateError("sparsity algorithm '" + std::string(type()) +
                     "' must be applied to the model before the optimizer");
  }
  if (!optimizer_hooks_.empty()) {
    throw StateError("sparsity algorithm '" + std::string(type()) +
                     "' has been applied to an optimizer already");
  }
  for (const ParameterPtr& parameter : parameters_) {
    if (std::ranges::find(optimizer.parameters(), parameter) == optimizer.parameters().end()) {
      throw StateError("the optimizer does not train parameter '" + parameter->name() +
                       "', which sparsity algorithm '" + std::string(type()) + "' controls");
    }
    parameter->prune();  // states that exist become sparse with the same mask
  }
  optimizer_hooks_ = {
      optimizer.register_step_pre_hook([this](Optimizer& o) { before_step(o); }),
      optimizer.register_step_post_hook([this](Optimizer& o) { after_step(o); }),
  };
}

void SparsityAlgorithm::after_step(Optimizer& optimizer) {
  for (const ParameterPtr& parameter : parameters_) parameter->prune();
  last_update_.clear();
  if (autoupdate) update(optimizer);
}

void SparsityAlgorithm::set_mask(Parameter& parameter, BitMask mask) {
  const BitMask old = current_mask(parameter);
  const size_t index = index_of(parameter);
  mask.for_each([&](int64_t i) { ever_active_[index].set(i); });
  MaskUpdate record{.parameter = parameter.name(), .target_sparsity = target_sparsity(parameter)};
  record.nnz = mask.count();
  record.dropped = count_missing(old, mask);
  record.grown = count_missing(mask, old);
  const auto numel = static_cast<double>(std::max<int64_t>(parameter.numel(), 1));
  record.actual_sparsity = 1.0 - static_cast<double>(record.nnz) / numel;
  record.churn =
      static_cast<double>(record.grown) / static_cast<double>(std::max<int64_t>(record.nnz, 1));
  record.ever_active = static_cast<double>(ever_active_[index].count()) / numel;
  count_dead(parameter.shape(), mask, record);
  parameter.set_pattern(Pattern::masked(parameter.shape(), std::move(mask)));
  last_update_.push_back(record);
  computed_hooks_.call(*this, parameter, record.actual_sparsity);
}

HookHandle SparsityAlgorithm::register_target_sparsity_hook(TargetSparsityHook hook) {
  return target_hooks_.add(std::move(hook));
}

HookHandle SparsityAlgorithm::register_computed_sparsity_hook(ComputedSparsityHook hook) {
  return computed_hooks_.add(std::move(hook));
}

void SparsityAlgorithm::forward_hooks_to(SparsityAlgorithm& outer) {
  target_hooks_.add(
      [&outer](SparsityAlgorithm& algorithm, const std::string& names, double target) {
        outer.target_hooks_.call(algorithm, names, target);
      });
  computed_hooks_.add([&outer](SparsityAlgorithm& algorithm, const Parameter& p, double actual) {
    outer.computed_hooks_.call(algorithm, p, actual);
  });
}

StateDict SparsityAlgorithm::state_dict() const {
  StateDict state;
  state.set("type", std::string(type()));
  state.set("step", step_);
  state.set("updates", updates_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    state.set("ever_active/" + parameters_[i]->name(),
              ByteArray{parameters_[i]->shape(), ever_active_[i].to_bytes()});
    state.set("target_nnz/" + parameters_[i]->name(), target_nnz_[i]);
    state.set("target_sparsity/" + parameters_[i]->name(), target_sparsity_[i]);
  }
  return state;
}

namespace {

void require_shape(const Shape& saved, const Parameter& parameter) {
  if (saved == parameter.shape()) return;
  throw CheckpointError("the sparsity state of '" + parameter.name() + "' has shape " +
                        saved.to_string() + ", the parameter " + parameter.shape().to_string());
}

}  // namespace

Tensor SparsityAlgorithm::saved_array(const StateDict& state, const std::string& prefix,
                                      const Parameter& parameter) {
  const auto& saved = state.get<Tensor>(prefix + "/" + parameter.name());
  require_shape(saved.shape(), parameter);
  return saved.to(Order::RowMajor).clone();
}

void SparsityAlgorithm::load_state_dict(const StateDict& state) {
  const auto& saved_type = state.get<std::string>("type");
  if (saved_type != type()) {
    throw CheckpointError("the checkpoint holds the state of sparsity algorithm '" + saved_type +
                          "', the run uses '" + std::string(type()) + "'");
  }
  step_ = state.get<int64_t>("step");
  updates_ = state.get<int64_t>("updates");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto& saved = state.get<ByteArray>("ever_active/" + parameters_[i]->name());
    require_shape(saved.shape, *parameters_[i]);
    ever_active_[i] = BitMask::from_bytes(saved.values);
    target_nnz_[i] = state.get<int64_t>("target_nnz/" + parameters_[i]->name());
    target_sparsity_[i] = state.get<double>("target_sparsity/" + parameters_[i]->name());
  }
}

}  // namespace lacuna
