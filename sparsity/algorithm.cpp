#include "lacuna/sparsity/algorithm.h"

#include <algorithm>
#include <cmath>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/dead_lines.h"
#include "lacuna/sparsity/selection.h"

namespace lacuna {

namespace {

// Above so many positions a bit for each is too much to remember which were ever active.
constexpr int64_t kMostTracked = int64_t{1} << 30;

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
    options_.structure.require_fit("parameter '" + parameter->name() + "'", parameter->shape());
    options_.layout.require_fit(*parameter);
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
    ever_active_.emplace_back();
    if (parameter->numel() <= kMostTracked) {
      ever_active_.back() = {BitMask::zeros(parameter->numel()), 0};
    }
    // A checkpoint's pattern stays in the layout that it was saved in.
    const bool stays = first == FirstMasks::Keep && !parameter->pattern()->is_dense();
    if (stays) continue;
    const Positions positions = first_positions(*parameter, first);
    set_positions(*parameter, positions);
  }
  if (first != FirstMasks::Inherit) last_update_.clear();
}

Positions SparsityAlgorithm::first_positions(const Parameter& parameter, FirstMasks first) {
  if (first == FirstMasks::Make) return initial_positions(parameter);
  Positions present = parameter.pattern()->positions();
  if (first == FirstMasks::Keep) return present;
  const Competition selection = competition(parameter);
  const int64_t target = target_nnz(parameter);
  if (selection.fit(present) == Competition::Fit::None) {  // of another structure
    return selection.grow_maximum(rows_of(parameter.to_dense()), target,
                                  Positions(parameter.shape()));
  }
  if (target >= present.count()) return present;
  return selection.thin(present, magnitudes(parameter.compacted(parameter.values()).storage()),
                        target);
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
                       .update_steps = {},
                       .layout = std::string(parameter->pattern()->layout().name()),
                       .final_layout = {},
                       .compressed = {},
                       .changes_every_step = parameter->changes_every_step});
  }
  foresee(planned, total_steps);
  require_nonzeros(planned);
  name_final_layouts(planned);
  return planned;
}

void SparsityAlgorithm::require_nonzeros(const std::vector<PlannedParameter>& planned) const {
  if (!foresees_exactly()) return;
  for (const PlannedParameter& p : planned) {
    if (p.shape.numel() == 0 || (p.initial_nnz > 0 && p.final_nnz > 0)) continue;
    throw ConfigError(std::string(type()) + ": parameter '" + p.parameter + "' of shape " +
                      p.shape.to_string() + (p.initial_nnz == 0 ? " begins" : " ends") +
                      " without any nonzero, for their number is rounded down; make it less sparse"
                      ", or leave it out");
  }
}

void SparsityAlgorithm::name_final_layouts(std::vector<PlannedParameter>& planned) const {
  for (PlannedParameter& entry : planned) {
    const auto is_it = [&](const ParameterPtr& p) { return p->name() == entry.parameter; };
    const auto found = std::ranges::find_if(parameters_, is_it);
    entry.final_layout = foreseen_layout(**found, entry.final_nnz).name();
    entry.compressed = compressed_layout().name();
  }
}

const Layout& SparsityAlgorithm::foreseen_layout(const Parameter& parameter, int64_t nnz) const {
  const double most = options_.structure.full_density() * static_cast<double>(parameter.numel());
  return layout_for(parameter, nnz, static_cast<double>(nnz) <= most);
}

Positions SparsityAlgorithm::initial_positions(const Parameter& parameter) {
  Positions made =
      options_.init_method.make({.parameter = parameter,
                                 .sparsity = static_cast<float>(target_sparsity(parameter)),
                                 .nnz = target_nnz(parameter),
                                 .groups = options_.groups,
                                 .structure = options_.structure,
                                 .seed = options_.seed});
  const Competition selection = competition(parameter);
  if (selection.fit(made) != Competition::Fit::Whole) selection.refuse(parameter.name(), made);
  return made;
}

void SparsityAlgorithm::refresh_targets() {
  std::vector<Shape> shapes;
  for (const ParameterPtr& parameter : parameters_) shapes.push_back(parameter->shape());
  target_nnz_ = targets_at(step_, updates_, shapes);
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

void SparsityAlgorithm::set_mask(Parameter& parameter, const BitMask& mask) {
  set_positions(parameter, Positions::of(parameter.shape(), mask));
}

const Layout& SparsityAlgorithm::compressed_layout() const {
  return options_.structure.exists() ? options_.structure.layout() : csr_layout();
}

const Layout& SparsityAlgorithm::layout_for(const Parameter& parameter, int64_t nnz,
                                            bool compressible) const {
  if (!compressible) return masked_layout();
  if (!options_.layout.is_auto()) return options_.layout.choose();
  if (!parameter.is_linear_weight) return masked_layout();
  const Layout& compressed = compressed_layout();
  const PatternUse use = parameter.changes_every_step ? PatternUse::OneStep : PatternUse::ManySteps;
  const std::string key = density_limit_key(parameter.name(), compressed, use);
  auto found = csr_up_to->find(key);
  if (found == csr_up_to->end()) {
    const double limit = density_limit(parameter.shape(), expected_batch, compressed, use);
    found = csr_up_to->emplace(key, limit).first;
  }
  const auto numel = static_cast<double>(std::max<int64_t>(parameter.numel(), 1));
  return static_cast<double>(nnz) <= found->second * numel ? compressed : masked_layout();
}

void SparsityAlgorithm::restore_layouts() {
  if (options_.layout.is_auto()) return;
  for (const ParameterPtr& parameter : parameters_) {
    const Pattern& pattern = *parameter->pattern();
    const Positions positions = pattern.positions();
    const Layout& layout =
        layout_for(*parameter, pattern.nnz(), can_compress(*parameter, positions));
    if (&layout == &pattern.layout()) continue;
    parameter->set_pattern(Pattern::make(layout, parameter->shape(), positions));
  }
}

bool SparsityAlgorithm::can_compress(const Parameter& parameter, const Positions& positions) const {
  switch (competition(parameter).fit(positions)) {
    case Competition::Fit::Whole:
      return true;
    case Competition::Fit::Partial:
      // Gradual pruning is on its way; csr holds any positions.
      return !options_.layout.is_auto() && &options_.layout.choose() == &csr_layout();
    case Competition::Fit::None:
      break;
  }
  competition(parameter).refuse(parameter.name(), positions);
}

void SparsityAlgorithm::set_positions(Parameter& parameter, const Positions& positions) {
  const Pattern& old = *parameter.pattern();
  if (old.is_dense()) {  // every position is there: nothing to compare
    install(parameter, positions, nullptr);
  } else {
    set_positions(parameter, positions, old.positions());
  }
}

void SparsityAlgorithm::set_positions(Parameter& parameter, const Positions& positions,
                                      const Positions& present) {
  install(parameter, positions, &present);
}

void SparsityAlgorithm::use_master(Parameter& parameter, const PatternPtr& pattern,
                                   const Tensor& master) {
  Tensor values = Tensor::empty(pattern->stored_shape());
  pattern->layout().from_dense(*pattern, master.storage(), values.mutable_storage());
  parameter.replace(pattern, std::move(values));
}

namespace {

// Moves a parameter to a pattern; returns how many positions stay. Without `present` all there are
// were present.
int64_t move_parameter(Parameter& parameter, const PatternPtr& pattern, const Positions& positions,
                       const Positions* present) {
  const Pattern& old = *parameter.pattern();
  if (present != nullptr && !old.is_flat() && !pattern->is_flat()) {
    const PatternMove move(old, *pattern, *present, positions);
    parameter.set_pattern(pattern, move);
    return move.kept();
  }
  const int64_t kept = present == nullptr ? positions.count() : count_common(*present, positions);
  parameter.set_pattern(pattern);
  return kept;
}

}  // namespace

void SparsityAlgorithm::install(Parameter& parameter, const Positions& positions,
                                const Positions* present) {
  const int64_t old_nnz = parameter.pattern()->nnz(), nnz = positions.count();
  if (EverActive* active = ever_active(parameter)) {
    positions.for_each_word([&](int64_t word, uint64_t there) {
      active->count += active->bits.set_in_word(word, there);
    });
  }
  const Layout& layout = layout_for(parameter, nnz, can_compress(parameter, positions));
  const PatternPtr pattern = Pattern::make(layout, parameter.shape(), positions);
  int64_t kept = 0;
  if (const Tensor master = master_of(parameter); master.defined()) {
    kept = present == nullptr ? nnz : count_common(*present, positions);
    use_master(parameter, pattern, master);
  } else {
    kept = move_parameter(parameter, pattern, positions, present);
  }
  note_update(parameter, dead_lines(positions), old_nnz - kept, nnz - kept);
}

void SparsityAlgorithm::set_selected_mask(Parameter& parameter, const BitMask& mask) {
  const Pattern& old = *parameter.pattern();
  const int64_t old_nnz = old.nnz(), nnz = mask.count();
  const int64_t kept = old.is_dense() ? nnz : count_common(old.mask(), mask);
  if (EverActive* active = ever_active(parameter)) {
    const std::span<const uint64_t> words = mask.words();
    for (size_t w = 0; w < words.size(); ++w) {
      active->count += active->bits.set_in_word(static_cast<int64_t>(w), words[w]);
    }
  }
  const Layout& layout = layout_for(parameter, nnz, true);
  use_master(parameter, Pattern::make(layout, parameter.shape(), mask), master_of(parameter));
  note_update(parameter, dead_lines(mask, parameter.shape()), old_nnz - kept, nnz - kept);
}

void SparsityAlgorithm::note_update(const Parameter& parameter, const DeadLines& dead,
                                    int64_t dropped, int64_t grown) {
  const auto numel = static_cast<double>(std::max<int64_t>(parameter.numel(), 1));
  const int64_t nnz = parameter.pattern()->nnz();
  MaskUpdate record{.parameter = parameter.name(),
                    .target_sparsity = target_sparsity(parameter),
                    .actual_sparsity = 1.0 - static_cast<double>(nnz) / numel,
                    .nnz = nnz,
                    .dropped = dropped,
                    .grown = grown,
                    .dead_rows = dead.rows,
                    .dead_columns = dead.columns,
                    .layout = std::string(parameter.pattern()->layout().name())};
  record.churn = static_cast<double>(grown) / static_cast<double>(std::max<int64_t>(nnz, 1));
  if (const EverActive* active = ever_active(parameter)) {
    record.ever_active = static_cast<double>(active->count) / numel;
  }
  last_update_.push_back(record);
  computed_hooks_.call(*this, parameter, record.actual_sparsity);
}

SparsityAlgorithm::EverActive* SparsityAlgorithm::ever_active(const Parameter& parameter) {
  std::optional<EverActive>& active = ever_active_[index_of(parameter)];
  return active ? &*active : nullptr;
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

}  // namespace lacuna
