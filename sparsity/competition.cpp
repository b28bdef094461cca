#include "lacuna/sparsity/competition.h"

#include <cstdlib>
#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/cells.h"
#include "lacuna/sparsity/units.h"

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

}  // namespace

Competition::Competition(const ScoreGroups& groups, const Structure& structure, const Shape& shape)
    : structure_(structure),
      groups_(groups, structure.exists() ? structure.units(shape) : shape),
      unit_(structure.unit_size()) {}

int64_t Competition::kept_after_drop(float drop_fraction, int64_t nnz) const {
  return lacuna::kept_after_drop(drop_fraction, nnz / unit_, groups_.count()) * groups_.count() *
         unit_;
}

Positions Competition::keep(const Positions& present, std::span<const float> scores,
                            int64_t count) const {
  const int64_t per_group = count / unit_ / groups_.count();
  if (!structure_.exists()) return top_k(present, scores, per_group, groups_);
  const Positions units = to_units(present, structure_);
  const std::vector<float> sums = unit_scores(units, scores, structure_);
  if (!structure_.is_nm()) return to_elements(top_k(units, sums, per_group, groups_), structure_);
  const Positions allowed = prune_cells(CellRule(structure_), units, sums);
  return to_elements(top_k(allowed, scores_of(allowed, units, sums), per_group, groups_),
                     structure_);
}

Positions Competition::thin(const Positions& present, std::span<const float> scores,
                            int64_t count) const {
  if (!structure_.is_nm()) return keep(present, scores, count);
  const Positions units = to_units(present, structure_);
  return to_elements(prune_cells_to(CellRule(structure_), units,
                                    unit_scores(units, scores, structure_), count / unit_),
                     structure_);
}

Positions Competition::grow_maximum(const ScoreRows& scores, int64_t count,
                                    const Positions& present) const {
  const int64_t per_group = count / unit_ / groups_.count();
  if (!structure_.exists()) return lacuna::grow_maximum(scores, per_group, present, groups_);
  const Positions units = to_units(present, structure_);
  const ScoreRows of_units = unit_rows(scores, present.columns(), structure_);
  return to_elements(structure_.is_nm() ? fill_cells(CellRule(structure_), of_units, units)
                                        : lacuna::grow_maximum(of_units, per_group, units, groups_),
                     structure_);
}

Positions Competition::grow_random(const CounterRng& rng, int64_t count,
                                   const Positions& present) const {
  const int64_t per_group = count / unit_ / groups_.count();
  if (!structure_.exists()) return lacuna::grow_random(rng, per_group, present, groups_);
  const Positions units = to_units(present, structure_);
  return to_elements(structure_.is_nm() ? fill_cells(CellRule(structure_), rng, units)
                                        : lacuna::grow_random(rng, per_group, units, groups_),
                     structure_);
}

// The first cell that is neither full nor as the structure allows; with `partial` null a full one
// counts as any other. {-1, -1} when there is none.
CellPlace Competition::misfit(const Positions& positions, bool* partial) const {
  const Positions units = to_units(positions, structure_);
  if (!structure_.is_nm()) return {};
  return find_overfull_cell(CellRule(structure_), units, partial);
}

Competition::Fit Competition::fit(const Positions& positions) const {
  if (!structure_.exists()) return Fit::Whole;
  try {
    bool partial = false;
    if (misfit(positions, &partial).row >= 0) return Fit::None;
    return partial ? Fit::Partial : Fit::Whole;
  } catch (const ShapeError&) {
    return Fit::None;  // a unit is there in part
  }
}

void Competition::refuse(const std::string& parameter, const Positions& positions) const {
  const auto refuse = [&](const std::string& why) {
    throw ConfigError("parameter '" + parameter + "': " + why);
  };
  try {
    const CellPlace place = misfit(positions, nullptr);
    refuse("the mask is not " + structure_.description() + ": too much is kept at row " +
           std::to_string(place.row * structure_.unit_rows()) + ", column " +
           std::to_string(place.column));
  } catch (const ShapeError& error) {
    refuse(error.what());
  }
  std::abort();  // not reached
}

}  // namespace lacuna
