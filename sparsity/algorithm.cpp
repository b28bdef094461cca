#include "lacuna/sparsity/algorithm.h"

#include <algorithm>
#include <cmath>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/selection.h"

namespace lacuna {

namespace {

// `layout: nm` and `layout: block` are the pattern's own.
LayoutOption layout_from_config(const Config& entry, const Structure& structure) {
  const std::string name = entry.get("layout").is_null() ? "" : entry.get("layout").text();
  if (name != "nm" && name != "block") return LayoutOption::from_config(entry);
  entry.get<std::string>("layout", "auto");
  if ((name == "nm") != structure.is_nm() || !structure.exists()) {
    entry.get("layout").error(
        "layout " + name + " needs a pattern of its type, as in pattern: {" +
        (name == "nm" ? "type: nm, n: 2, m: 4}" : "type: block, rows: 16, cols: 16}"));
  }
  return LayoutOption(structure.layout());
}

// Sparsities of N:M patterns that are written as decimals.
constexpr double kSparsityTolerance = 1e-4;

}  // namespace

SparsityOptions SparsityOptions::from_config(const Config& entry, uint64_t seed) {
  SparsityOptions options{.sparsity = SparsityTarget::from_config(entry),
                          .init_method = InitMethod::from_config(entry.get("init_method")),
                          .param_filter = ParameterFilter::from_config(entry.get("param_filter")),
                          .groups = {},
                          .structure = Structure::from_config(entry.get("pattern")),
                          .distribution = Distribution::from_config(entry.get("distribution")),
                          .layout = {},
                          .seed = seed};
  options.layout = layout_from_config(entry, options.structure);
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

SparsityAlgorithm::SparsityAlgorithm(SparsityOptions options) : options_(std::move(options)) {
  const Structure& structure = options_.structure;
  if (!structure.exists()) return;
  const auto refuse = [&](const std::string& why) {
    throw ConfigError("pattern " + structure.description() + " " + why);
  };
  if (options_.groups.count > 1) {
    refuse("does not go with balance_in_groups or balance_out_groups");
  }
  for (const char* method : {"balanced", "checkerboard"}) {
    if (options_.init_method.name() == method) {
      refuse("does not go with init_method '" + std::string(method) + "'; give random or topk");
    }
  }
  if (options_.sparsity.has_fan_in()) refuse("does not go with fan_in; give sparsity or density");
  if (!structure.is_nm()) return;
  if (options_.distribution.kind != Distribution::Kind::Uniform) {
    refuse("gives every parameter the same sparsity; leave distribution out");
  }
  if (!options_.sparsity.is_constant()) return;
  const double implied = 1.0 - structure.full_density();
  const double given = options_.sparsity.sparsity_at(0, 0, Shape{});
  if (given != 0.0 && std::abs(given - implied) > kSparsityTolerance) {
    refuse("has a sparsity of " + Config(implied).text() + ": leave `sparsity` out, found " +
           Config(given).text());
  }
  options_.sparsity = SparsityTarget::density(structure.full_density());
}

namespace {

// Above so many positions a bit for each is too much to remember which were ever active.
constexpr int64_t kMostTracked = int64_t{1} << 30;

// Rows and columns (dimension 0, and all others together) that hold no position.
void count_dead(const Positions& positions, MaskUpdate& record) {
  std::vector<char> alive(static_cast<size_t>(positions.columns()));
  int64_t dead = positions.columns();
  for (int64_t r = 0; r < positions.rows() && dead > 0; ++r) {  // mostly few rows use all columns
    for (const uint32_t column : positions.row(r)) {
      dead -= alive[column] == 0 ? 1 : 0;
      alive[column] = 1;
    }
  }
  record.dead_columns = dead;
  for (int64_t r = 0; r < positions.rows(); ++r)
    record.dead_rows += positions.row(r).empty() ? 1 : 0;
}

// Eight bits to a byte, the lowest first.
ByteArray packed(const BitMask& mask) {
  ByteArray bytes{Shape{(mask.size() + 7) / 8}, {}};
  bytes.values.resize(static_cast<size_t>(bytes.shape[0]));
  for (size_t i = 0; i < bytes.values.size(); ++i) {
    bytes.values[i] = static_cast<uint8_t>(mask.words()[i / 8] >> (i % 8 * 8));
  }
  return bytes;
}

BitMask unpacked(const ByteArray& bytes, int64_t size) {
  BitMask mask = BitMask::zeros(size);
  for (int64_t i = 0; i < size; ++i) {
    if ((bytes.values[static_cast<size_t>(i / 8)] >> (i % 8) & 1) != 0) mask.set(i);
  }
  return mask;
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
    options_.structure.require_fit(parameter->name(), parameter->shape());
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
                       .compressed = {}});
  }
  foresee(planned, total_steps);
  name_final_layouts(planned);
  return planned;
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

std::vector<int64_t> SparsityAlgorithm::targets_at(int64_t step, int64_t updates,
                                                   const std::vector<Shape>& shapes) const {
  const Structure& structure = options_.structure;
  if (!structure.exists()) {
    return options_.sparsity.nnz_at(step, updates, shapes, options_.distribution, options_.groups);
  }
  std::vector<Shape> units;
  for (const Shape& shape : shapes) units.push_back(structure.units(shape));
  std::vector<int64_t> counts =
      options_.sparsity.nnz_at(step, updates, units, options_.distribution, options_.groups);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (structure.is_nm()) counts[i] = nm_target(counts[i], units[i].numel());
    counts[i] *= structure.unit_size();
  }
  return counts;
}

// Units that whole cells make of a target: a cell is full or has its quota.
int64_t SparsityAlgorithm::nm_target(int64_t wanted, int64_t units) const {
  const Structure& s = options_.structure;
  const int64_t cells = units / s.m, least = cells * s.n;
  const auto slack = static_cast<int64_t>(kSparsityTolerance * static_cast<double>(units)) + 1;
  if (wanted + slack < least) {
    throw ConfigError(
        "pattern " + s.description() + " has a sparsity of " +
        Config(1.0 - s.full_density()).text() + " at most, the schedule asks for " +
        Config(1.0 - static_cast<double>(wanted) / static_cast<double>(units)).text());
  }
  const int64_t pruned = std::min((units - wanted + s.m - s.n - 1) / (s.m - s.n), cells);
  return units - pruned * (s.m - s.n);
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
  const std::string key = density_limit_key(parameter.name(), compressed);
  auto found = csr_up_to->find(key);
  if (found == csr_up_to->end()) {
    const double limit = density_limit(parameter.shape(), expected_batch, compressed);
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
  const size_t index = index_of(parameter);
  const int64_t nnz = positions.count(), old_nnz = parameter.pattern()->nnz();
  const auto numel = static_cast<double>(std::max<int64_t>(parameter.numel(), 1));
  MaskUpdate record{.parameter = parameter.name(), .target_sparsity = target_sparsity(parameter)};
  record.nnz = nnz;
  record.actual_sparsity = 1.0 - static_cast<double>(nnz) / numel;
  note_active(index, positions);
  if (ever_active_[index]) {
    record.ever_active = static_cast<double>(ever_active_[index]->count) / numel;
  }
  count_dead(positions, record);
  const Layout& layout = layout_for(parameter, nnz, can_compress(parameter, positions));
  record.layout = layout.name();
  const PatternPtr pattern = Pattern::make(layout, parameter.shape(), positions);
  const int64_t kept = move_parameter(parameter, pattern, positions, present);
  record.dropped = old_nnz - kept;
  record.grown = nnz - kept;
  record.churn = static_cast<double>(record.grown) / static_cast<double>(std::max<int64_t>(nnz, 1));
  last_update_.push_back(record);
  computed_hooks_.call(*this, parameter, record.actual_sparsity);
}

void SparsityAlgorithm::note_active(size_t index, const Positions& positions) {
  if (!ever_active_[index]) return;
  auto& [bits, count] = *ever_active_[index];
  positions.for_each_word([&mask = bits, &active = count](int64_t word, uint64_t there) {
    active += mask.set_in_word(word, there);
  });
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
    if (ever_active_[i]) {
      state.set("ever_active/" + parameters_[i]->name(), packed(ever_active_[i]->bits));
    }
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
    if (ever_active_[i]) {
      const int64_t numel = parameters_[i]->numel();
      const auto& saved = state.get<ByteArray>("ever_active/" + parameters_[i]->name());
      const bool is_packed = saved.shape == Shape{(numel + 7) / 8};
      // Format 1 of checkpoints has a byte for each position.
      if (!is_packed && saved.shape != parameters_[i]->shape()) {
        throw CheckpointError("the sparsity state of '" + parameters_[i]->name() + "' has shape " +
                              saved.shape.to_string() + ", expected a bit for each of " +
                              std::to_string(numel) + " positions");
      }
      const BitMask bits = is_packed ? unpacked(saved, numel) : BitMask::from_bytes(saved.values);
      ever_active_[i] = {bits, bits.count()};
    }
    target_nnz_[i] = state.get<int64_t>("target_nnz/" + parameters_[i]->name());
    target_sparsity_[i] = state.get<double>("target_sparsity/" + parameters_[i]->name());
  }
}

}  // namespace lacuna
