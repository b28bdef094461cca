#include "lacuna/sparsity/masks/mask_selector.h"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/masks/balanced_mask.hpp"
#include "lacuna/sparsity/masks/cells.hpp"
#include "lacuna/sparsity/masks/growth.hpp"
#include "lacuna/sparsity/masks/largest_part.hpp"
#include "lacuna/sparsity/masks/random_growth.hpp"
#include "lacuna/sparsity/masks/top_k.hpp"
#include "lacuna/sparsity/masks/units.hpp"
#include "lacuna/sparsity/options/counting.hpp"

namespace lacuna {
namespace {

// Scores of the units of `some`, all of which are among `units`.
std::vector<float> scores_of(const Positions& some, const Positions& units,
                             std::span<const float> scores) {
  const Array<int32_t> places = places_in(units, some);
  std::vector<float> chosen(places.size());
  for (size_t i = 0; i < places.size(); ++i) chosen[i] = scores[static_cast<size_t>(places[i])];
  return chosen;
}

int64_t checked(int64_t count) {
  if (count < 0) throw ShapeError(fmt::format("a mask cannot have {} positions", count));
  return count;
}

}  // namespace

MaskSelector::MaskSelector(const ScoreGroups& groups, const PatternShape& pattern,
                           const Shape& shape)
    : shape_(shape),
      taps_(matrix_taps(shape)),
      pattern_(pattern),
      groups_(groups, pattern.is_structured() ? pattern.units(shape) : shape) {}

int64_t MaskSelector::units_per_group(int64_t count) const {
  return checked(count) / pattern_.unit_size() / groups_.count();
}

Positions MaskSelector::units_of(const MaskSet& mask) const {
  return to_units(mask.positions(), pattern_, taps_);
}

MaskSet MaskSelector::of_units(const Positions& units) const {
  return MaskSet(shape_, to_elements(units, pattern_, taps_));
}

int64_t MaskSelector::kept_after_drop(float drop_fraction, int64_t nnz) const {
  const int64_t unit = pattern_.unit_size();
  return lacuna::kept_after_drop(drop_fraction, nnz / unit, groups_.count()) * groups_.count() *
         unit;
}

MaskSet MaskSelector::keep(const MaskSet& present, std::span<const float> scores,
                           int64_t count) const {
  const int64_t per_group = units_per_group(count);
  if (!pattern_.is_structured()) {
    return MaskSet(shape_, top_k(present.positions(), scores, per_group, groups_));
  }
  const Positions units = units_of(present);
  const std::vector<float> sums = unit_scores(units, scores, pattern_, taps_);
  if (!pattern_.is_nm()) return of_units(top_k(units, sums, per_group, groups_));
  const Positions allowed = prune_cells(CellRule(pattern_, taps_), units, sums);
  return of_units(top_k(allowed, scores_of(allowed, units, sums), per_group, groups_));
}

MaskSet MaskSelector::prune_gradually(const MaskSet& present, std::span<const float> scores,
                                      int64_t count) const {
  if (!pattern_.is_nm()) return keep(present, scores, count);
  const Positions units = units_of(present);
  return of_units(prune_cells_to(CellRule(pattern_, taps_), units,
                                 unit_scores(units, scores, pattern_, taps_),
                                 checked(count) / pattern_.unit_size()));
}

MaskSet MaskSelector::grow_maximum(const Scores& scores, int64_t count,
                                   const MaskSet& present) const {
  const int64_t per_group = units_per_group(count);
  if (!pattern_.is_structured()) {
    return MaskSet(shape_, lacuna::grow_maximum(scores, per_group, present.positions(), groups_));
  }
  const Positions units = units_of(present);
  const Scores of_rows = unit_rows(scores, matrix_columns(shape_), pattern_, taps_);
  return of_units(pattern_.is_nm() ? fill_cells(CellRule(pattern_, taps_), of_rows, units)
                                   : lacuna::grow_maximum(of_rows, per_group, units, groups_));
}

MaskSet MaskSelector::grow_random(const CounterRng& rng, int64_t count,
                                  const MaskSet& present) const {
  const int64_t per_group = units_per_group(count);
  if (!pattern_.is_structured()) {
    return MaskSet(shape_, lacuna::grow_random(rng, per_group, present.positions(), groups_));
  }
  const Positions units = units_of(present);
  return of_units(pattern_.is_nm() ? fill_cells(CellRule(pattern_, taps_), rng, units)
                                   : lacuna::grow_random(rng, per_group, units, groups_));
}

MaskSet MaskSelector::revive_empty(const CounterRng& rng, int64_t count,
                                   const MaskSet& kept) const {
  return MaskSet(
      shape_, lacuna::revive_empty(rng, units_per_group(count), kept.positions(), groups_, taps_));
}

MaskSet MaskSelector::largest(const Tensor& matrix, int64_t count) const {
  return MaskSet(shape_, largest_part(pattern_, matrix, checked(count))).known_to_have(pattern_);
}

// The first cell that is neither full nor as the pattern allows; with `partial` null a full one
// counts as any other. {-1, -1} when there is none.
MaskSelector::Place MaskSelector::misfit(const MaskSet& mask, bool* partial) const {
  const Positions units = units_of(mask);
  if (!pattern_.is_nm()) return {};
  const CellPlace place = find_overfull_cell(CellRule(pattern_, taps_), units, partial);
  return {.row = place.row, .column = place.column};
}

MaskSelector::Fit MaskSelector::fit(const MaskSet& mask) const {
  // A mask that kernels have just selected has the pattern: checking would list its positions.
  if (!pattern_.is_structured() || mask.is_known_to_have(pattern_)) return Fit::Whole;
  try {
    bool partial = false;
    if (misfit(mask, &partial).row >= 0) return Fit::None;
    return partial ? Fit::Partial : Fit::Whole;
  } catch (const ShapeError&) {
    return Fit::None;  // a unit is there in part
  }
}

void MaskSelector::refuse(const std::string& parameter, const MaskSet& mask) const {
  std::string why;
  try {
    const Place place = misfit(mask, nullptr);
    why = fmt::format("the mask is not {}: too much is kept at row {}, column {}",
                      pattern_.description(), place.row * pattern_.unit_rows(), place.column);
  } catch (const ShapeError& error) {
    why = error.what();
  }
  throw ConfigError("parameter '" + parameter + "': " + why);
}

}  // namespace lacuna
