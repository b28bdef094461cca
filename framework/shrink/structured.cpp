#include "lacuna/framework/shrink/structured.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/shrink/unit_choice.hpp"
#include "lacuna/framework/shrink/unit_scores.hpp"
#include "lacuna/sparsity/calibration/calibration_run.hpp"

namespace lacuna {
namespace {

// Blocks of units that are tried again after the search of each update, and the part of a budget
// that the choice of multiples shall use.
constexpr int kRefills = 50;
constexpr double kLeastUse = 0.9;

// The unit's index that a column of a weight belongs to; columns are all dimensions but the first.
size_t index_along(const UnitGraph::Slice& slice, size_t column) {
  const Shape& shape = slice.parameter->shape();
  int64_t inner = 1;
  for (int dim = slice.dim + 1; dim < shape.rank(); ++dim) inner *= shape[dim];
  return column / static_cast<size_t>(inner) % slice.units.size();
}

bool is_removable(const ModelUnits& units, int32_t unit) {
  const auto u = static_cast<size_t>(unit);
  return units.why_fixed[u].empty() && units.group_of[u] >= 0;
}

// Which rows of a weight, and which of the elements in a row, are between units that stay.
struct KeptLines {
  std::vector<uint8_t> rows, columns;

  KeptLines(const Parameter& parameter, const ModelUnits& units, const KeptUnits& kept)
      : rows(static_cast<size_t>(parameter.shape()[0]), 1),
        columns(rows.empty() ? 0 : static_cast<size_t>(parameter.numel()) / rows.size(), 1) {
    for (const UnitGraph::Slice& slice : units.slices) {
      if (slice.parameter.get() != &parameter) continue;
      std::vector<uint8_t>& lines = slice.dim == 0 ? rows : columns;
      for (size_t i = 0; i < lines.size(); ++i) {
        const size_t index = slice.dim == 0 ? i : index_along(slice, i);
        if (kept[static_cast<size_t>(slice.units[index])] == 0) lines[i] = 0;
      }
    }
  }
  double part() const {
    const auto ones = [](const std::vector<uint8_t>& lines) {
      return static_cast<double>(std::count(lines.begin(), lines.end(), 1)) /
             static_cast<double>(std::max<size_t>(lines.size(), 1));
    };
    return ones(rows) * ones(columns);
  }
};

MaskSet without_units(const MaskSet& mask, const KeptLines& kept) {
  const Positions& positions = mask.positions();
  std::vector<int64_t> row_begin{0};
  std::vector<uint32_t> columns;
  for (int64_t row = 0; row < positions.rows(); ++row) {
    if (kept.rows[static_cast<size_t>(row)] != 0) {
      for (const uint32_t column : positions.row(row)) {
        if (kept.columns[column] != 0) columns.push_back(column);
      }
    }
    row_begin.push_back(static_cast<int64_t>(columns.size()));
  }
  return MaskSet(mask.shape(),
                 Positions(mask.shape(), std::move(row_begin), std::span<const uint32_t>(columns)));
}

}  // namespace

Structured::Structured(Options options)
    : DynamicSparsityAlgorithm(std::move(options.common)),
      units_of_(std::move(options.units)),
      budget_(options.budget) {
  if (units_of_.method != ShrinkMethod::Dead && this->options().sparsity.is_constant()) {
    throw ConfigError("structured: a constant sparsity masks no unit; give a sparsity schedule");
  }
  const Config stop = update_schedule().to_config().peek("stop");
  if (stop.is_number()) stop_ = stop.as<int64_t>();
}

bool Structured::can_mask(const Parameter& parameter) {
  const bool is_product =
      parameter.use == WeightUse::Linear || parameter.use == WeightUse::Convolution;
  return is_product && parameter.shape().rank() > 1;
}

void Structured::use_model(const Module& model, const Shape& example,
                           std::span<const ModuleRow> rows) {
  model_ = &model;
  rows_.assign(rows.begin(), rows.end());
  units_.emplace(model, example);
  fix_unmasked_units();
  changes_.assign(static_cast<size_t>(units_->count), 0.0f);
  choose_rounding();
}

// Multiples that come close to what is left at the end, were all scores equal.
void Structured::choose_rounding() {
  const std::vector<double> equal(changes_.size(), 1.0);
  removal_order(*units_, rows_, equal, units_of_);  // refuses layers that cannot be cut
  rounding_ = units_of_.round_to;
  if (!rounding_.is_auto) return;
  const Config final = options().sparsity.schedule().config().peek("final");
  rounding_.multiple = 1;
  if (!final.is_number()) return;
  const RoundedChoice choice = choose_rounded(
      *units_, Rounding::automatic(),
      [&](const std::vector<int64_t>& multiples) { return blocks_by(equal, multiples); },
      search_to(final.as<double>()), kLeastUse);
  if (choice.kept) rounding_ = choice.rounding;
}

std::vector<std::vector<int32_t>> Structured::blocks_by(
    const std::vector<double>& scores, const std::vector<int64_t>& multiples) const {
  return removal_blocks(*units_, rows_, scores, units_of_, multiples);
}

BudgetSearch Structured::search_to(double removed) const {
  BudgetSearch search{.most_refills = kRefills};
  if (budget_) {
    // Schedules are in float32, and a block more would go for an error of that.
    search.target = 1.0 - removed + (rounding_.multiple > 1 ? 1e-6 : 1e-9);
    search.part = [this](const KeptUnits& kept) { return part_left(kept); };
    return search;
  }
  std::vector<int32_t> removable = removable_units(*units_, units_of_);
  const auto all = static_cast<double>(removable.size());
  search.target = 1.0 - std::round(removed * all) / all + 1e-9;
  search.part = [removable = std::move(removable), all](const KeptUnits& kept) {
    const auto is_kept = [&](int32_t unit) { return kept[static_cast<size_t>(unit)] != 0; };
    return static_cast<double>(std::ranges::count_if(removable, is_kept)) / all;
  };
  return search;
}

// A unit goes when all weights that take it have no element for it: those must be maskable.
void Structured::fix_unmasked_units() {
  std::vector<uint8_t> is_taken(static_cast<size_t>(units_->count));
  for (const UnitGraph::Slice& slice : units_->slices) {
    if (!slice.is_input) continue;
    for (const int32_t unit : slice.units) is_taken[static_cast<size_t>(unit)] = 1;
  }
  const auto fix = [&](int32_t unit, const std::string& why) {
    std::string& reason = units_->why_fixed[static_cast<size_t>(unit)];
    if (reason.empty()) reason = why;
  };
  for (const UnitGraph::Slice& slice : units_->slices) {
    if (!slice.is_input || (slice.dim == 1 && filter().matches(*slice.parameter))) continue;
    const Parameter& parameter = *slice.parameter;
    const std::string why = fmt::format("'{}', which takes it, {}", parameter.name(),
                                        !parameter.trainable ? "is frozen" : "cannot have a mask");
    for (const int32_t unit : slice.units) fix(unit, why);
  }
  for (int32_t unit = 0; unit < units_->count; ++unit) {
    if (is_taken[static_cast<size_t>(unit)] == 0) fix(unit, "no weight takes it");
  }
  for (UnitGroup& group : units_->groups) {
    const auto first_free = std::ranges::find_if(
        group.units, [&](int32_t unit) { return is_removable(*units_, unit); });
    if (group.units.empty() || first_free != group.units.end()) continue;
    group.why_fixed = units_->why_fixed[static_cast<size_t>(group.units.front())];
  }
}

void Structured::calibrate_on(const CalibrationData& data) {
  if (units_of_.method != ShrinkMethod::Error) return;
  run_ = calibration_run(data, units_of_.calibration, type());
}

void Structured::adopt(Module& module, std::vector<ParameterPtr> parameters, MaskSource source) {
  if (!units_ || (units_of_.method == ShrinkMethod::Error && !run_)) {
    throw StateError(
        "structured masks the units of a run's model; it works only in a configuration, with "
        "train");
  }
  module_ = &module;
  const std::vector<int32_t> removable = removable_units(*units_, units_of_);
  const std::set<int32_t> may_go(removable.begin(), removable.end());
  std::vector<ParameterPtr> own;
  for (const UnitGraph::Slice& slice : units_->slices) {
    const bool is_cut =
        std::ranges::any_of(slice.units, [&](int32_t unit) { return may_go.contains(unit); });
    if (!is_cut || !can_mask(*slice.parameter)) continue;
    if (std::ranges::find(parameters, slice.parameter) == parameters.end()) {
      if (!slice.is_input) continue;  // frozen, perhaps
      throw ConfigError("structured: weight '" + slice.parameter->name() +
                        "' reads units to be masked, but belongs to another algorithm; exclude "
                        "them with `layers`");
    }
    if (std::ranges::find(own, slice.parameter) == own.end()) own.push_back(slice.parameter);
  }
  std::ranges::sort(own, {}, [&](const ParameterPtr& parameter) {
    return std::ranges::find(parameters, parameter) - parameters.begin();
  });
  std::ranges::fill(changes_, 0.0f);
  take_charge(std::move(own));
  begin(module, source, GradientRoute::Both);
}

MaskSet Structured::initial_mask(const SparseWeight& weight, MaskSource source) {
  return source == MaskSource::Made ? MaskSet::all(weight.shape()) : weight.mask();
}

// All but those that may go and that no weight takes by an element of its mask.
KeptUnits Structured::present_units() const {
  KeptUnits present(static_cast<size_t>(units_->count), 1);
  for (const int32_t unit : removable_units(*units_, units_of_)) {
    present[static_cast<size_t>(unit)] = 0;
  }
  for (const SparseWeight& weight : weights()) {
    const MaskSet mask = weight.mask();
    const Positions& positions = mask.positions();
    std::vector<uint8_t> has_element(static_cast<size_t>(positions.columns()));
    for (const uint32_t column : positions.column()) has_element[column] = 1;
    for (const UnitGraph::Slice& slice : units_->slices) {
      if (!slice.is_input || slice.parameter != weight.pointer()) continue;
      for (size_t i = 0; i < has_element.size(); ++i) {
        if (has_element[i] == 0) continue;
        present[static_cast<size_t>(slice.units[index_along(slice, i)])] = 1;
      }
    }
  }
  return present;
}

double Structured::part_left(const KeptUnits& kept) const {
  const auto cost = [&](const KeptUnits& units) {
    const UnitsCost all = dense_cost_of(*model_, rows_, *units_, units);
    return *budget_ == ShrinkBudget::Flops ? all.flops : all.parameters;
  };
  return cost(kept) / cost(without_first(*units_, {}, 0));
}

KeptUnits Structured::choose(KeptUnits present, std::vector<double> scores, double removed) const {
  for (size_t unit = 0; unit < present.size(); ++unit) {
    if (present[unit] == 0) scores[unit] = -1.0;  // what is masked comes first
  }
  if (units_of_.method == ShrinkMethod::Dead) {
    for (int32_t unit : removal_order(*units_, rows_, scores, units_of_)) {
      if (scores[static_cast<size_t>(unit)] <= 0.0) present[static_cast<size_t>(unit)] = 0;
    }
    return present;
  }
  const auto blocks = blocks_by(scores, multiples_of_units(*units_, rounding_));
  const KeptUnits chosen =
      keep_within(*units_, blocks, search_to(removed)).value_or(without_all(*units_, blocks));
  for (size_t unit = 0; unit < present.size(); ++unit) present[unit] &= chosen[unit];
  return present;
}

void Structured::before_step(Optimizer&, StepScopes&) {
  if (!uses_gradients() || (stop_ && step() + 1 >= *stop_)) return;
  const std::vector<double> changes = loss_changes(*units_);
  for (size_t unit = 0; unit < changes_.size(); ++unit) {
    changes_[unit] += static_cast<float>(changes[unit] * changes[unit]);
  }
}

std::vector<double> Structured::current_scores() const {
  if (uses_gradients()) return {changes_.begin(), changes_.end()};
  if (units_of_.method == ShrinkMethod::Error) return error_scores(*module_, *units_, run_);
  return magnitude_scores(*units_);
}

void Structured::update(Optimizer&) {
  count_step();
  if (!update_schedule().is_update(step())) return;
  refresh_targets();
  const double removed = options().sparsity.sparsity_at(step(), updates(), Shape{1});
  next_ = choose(present_units(), current_scores(), removed);
  for (SparseWeight& weight : weights()) {
    const MaskSet mask = weight.mask();
    const MaskSet next = update_mask(weight, mask, static_cast<float>(removed));
    weight.set_target(next.count(), 1.0 - static_cast<double>(next.count()) /
                                              static_cast<double>(weight.numel()));
    set_mask(weight, next, &mask);
  }
  std::ranges::fill(changes_, 0.0f);
  count_update();
}

MaskSet Structured::update_mask(const SparseWeight& weight, const MaskSet& mask, float) {
  return without_units(mask, KeptLines(weight.parameter(), *units_, next_));
}

void Structured::require_budget(double removed) const {
  const std::vector<double> equal(changes_.size(), 1.0);
  const auto blocks = blocks_by(equal, multiples_of_units(*units_, rounding_));
  const BudgetSearch search = search_to(removed);
  const double least = search.part(without_all(*units_, blocks));
  if (search.target >= least - 1e-6) return;
  throw ConfigError(fmt::format(
      "structured: {} of {:.4g} cannot be reached: {:.3g} remains even if every layer keeps only "
      "the fraction keep_at_least ({:g}){}{}",
      budget_ ? to_string(*budget_) : "a fraction of the units", 1.0 - removed, least,
      units_of_.keep_at_least,
      rounding_.multiple == 1
          ? ""
          : fmt::format(", and counts are multiples of {} (round_to)", rounding_.multiple),
      units_of_.layers.empty() ? "" : " and `layers` leaves the others as they are"));
}

void Structured::forecast(Forecast& forecast) const {
  if (!units_) throw StateError("structured plans the units of a run's model");
  DynamicSparsityAlgorithm::forecast(forecast);
  forecast.is_exact = false;
  for (PlannedParameter& planned : forecast.parameters) {
    planned.final_nnz = planned.initial_nnz;
    planned.changes.clear();
    planned.chosen_by = units_of_.layers.empty()
                            ? "the units of all layers"
                            : "the units of '" + join(units_of_.layers, "', '") + "'";
  }
  if (units_of_.method == ShrinkMethod::Dead || forecast.parameters.empty()) return;
  const std::vector<int64_t> steps = forecast.parameters.front().update_steps;
  KeptUnits kept(static_cast<size_t>(units_->count), 1);
  int64_t made = update_schedule().is_update(0) ? 1 : 0;
  require_budget(options().sparsity.sparsity_at(
      steps.back(), made + static_cast<int64_t>(steps.size()) - 1, Shape{1}));
  double before = 0.0;
  for (const int64_t step : steps) {
    const double removed = options().sparsity.sparsity_at(step, made++, Shape{1});
    if (removed == before) continue;
    if (removed < before) {
      throw ConfigError(
          fmt::format("structured: the sparsity falls before the update at step {}, but masked "
                      "units stay masked",
                      step));
    }
    before = removed;
    kept = choose(kept, std::vector<double>(kept.size(), 1.0), removed);
    for (PlannedParameter& planned : forecast.parameters) {
      const double part = KeptLines(*planned.source, *units_, kept).part();
      const int64_t nnz = std::llround(part * static_cast<double>(planned.initial_nnz));
      if (nnz != planned.final_nnz) planned.changes.push_back({step, nnz});
      planned.final_nnz = nnz;
    }
  }
}

StateDict Structured::state_dict() const {
  StateDict state = DynamicSparsityAlgorithm::state_dict();
  if (!uses_gradients()) return state;
  Tensor changes = Tensor::empty({static_cast<int64_t>(changes_.size())});
  std::ranges::copy(changes_, changes.mutable_data());
  state.set("unit_changes", std::move(changes));
  return state;
}

void Structured::load_state_dict(const StateDict& state) {
  DynamicSparsityAlgorithm::load_state_dict(state);
  if (!uses_gradients()) return;
  const auto& saved = state.get<Tensor>("unit_changes");
  if (saved.shape() != Shape{static_cast<int64_t>(changes_.size())}) {
    throw CheckpointError(fmt::format("'unit_changes' has the shape {}, the model has {} units",
                                      saved.shape().to_string(), changes_.size()));
  }
  std::copy_n(saved.data(), changes_.size(), changes_.begin());
}

}  // namespace lacuna
