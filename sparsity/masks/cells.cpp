#include "lacuna/sparsity/masks/cells.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "lacuna/sparsity/masks/growth.hpp"

namespace lacuna {
namespace {

/// A column of units by its cell of a row, and its place in that cell's row. Cells ascend as their
/// first columns do: those of a convolution's channels 0 … M − 1, one for each tap, then the next.
struct CellColumn {
  size_t cell, place;
};

CellColumn cell_column(const CellRule& rule, size_t column) {
  const auto width = static_cast<size_t>(rule.columns()), taps = static_cast<size_t>(rule.taps());
  if (taps == 1) return {column / width, column % width};
  const size_t channel = column / taps;
  return {channel / width * taps + column % taps, channel % width};
}

// The first column of a cell.
int64_t first_column(const CellRule& rule, size_t cell) {
  const auto index = static_cast<int64_t>(cell);
  return index / rule.taps() * rule.columns() * rule.taps() + index % rule.taps();
}

/// The cells of as many rows of units as a cell is high.
class Band {
 public:
  Band(const CellRule& rule, int64_t columns)
      : rule_(rule),
        cells(static_cast<size_t>(columns / rule.columns())),
        scores(cells.size() * static_cast<size_t>(rule.size())) {}

  /// Calls `visit(place in units, cell, unit of the cell)` for the units of band `b`.
  template <class Visit>
  void for_each(const Positions& units, int64_t b, Visit&& visit) const {
    for (int64_t i = 0; i < rule_.rows(); ++i) {
      const int64_t r = b * rule_.rows() + i;
      const auto first = static_cast<size_t>(i * rule_.columns());
      auto place = static_cast<size_t>(units.row_begin()[static_cast<size_t>(r)]);
      for (const uint32_t c : units.row(r)) {
        const CellColumn at = cell_column(rule_, c);
        visit(place++, at.cell, first + at.place);
      }
    }
  }

  /// Calls `visit(column)` for the units in the cells of row `i` of the band, ascending.
  template <class Visit>
  void for_each_in_row(int64_t i, Visit&& visit) const {
    const auto width = static_cast<size_t>(rule_.columns()),
               taps = static_cast<size_t>(rule_.taps());
    const size_t row = static_cast<size_t>(i) * width;
    for (size_t first = 0; first < cells.size(); first += taps) {  // of the same channels
      for (size_t place = 0; place < width; ++place) {
        for (size_t tap = 0; tap < taps; ++tap) {
          if (holds(first + tap, row + place)) visit(first * width + place * taps + tap);
        }
      }
    }
  }

  void load(const Positions& units, int64_t b) {
    std::ranges::fill(cells, CellBits{0});
    for_each(units, b, [&](size_t, size_t cell, size_t unit) { set(cell, unit); });
  }
  void load(const Positions& units, int64_t b, std::span<const float> present_scores) {
    std::ranges::fill(cells, CellBits{0});
    for_each(units, b, [&](size_t place, size_t cell, size_t unit) {
      set(cell, unit);
      scores[cell * static_cast<size_t>(rule_.size()) + unit] = present_scores[place];
    });
  }
  /// |score| of all units, from their rows.
  void load_scores(std::span<const float> rows) {
    const auto width = static_cast<size_t>(rule_.columns());
    const size_t columns = cells.size() * width;
    for (size_t i = 0; i < static_cast<size_t>(rule_.rows()); ++i) {
      for (size_t c = 0; c < columns; ++c) {
        const CellColumn at = cell_column(rule_, c);
        scores[at.cell * static_cast<size_t>(rule_.size()) + i * width + at.place] =
            std::abs(rows[i * columns + c]);
      }
    }
  }
  std::span<const float> scores_of(size_t cell) const {
    return std::span(scores).subspan(cell * static_cast<size_t>(rule_.size()),
                                     static_cast<size_t>(rule_.size()));
  }
  bool holds(size_t cell, size_t unit) const { return (cells[cell] >> unit & 1) != 0; }

 private:
  const CellRule& rule_;
  void set(size_t cell, size_t unit) {
    cells[cell] = static_cast<CellBits>(cells[cell] | 1u << unit);
  }

 public:
  std::vector<CellBits> cells;
  std::vector<float> scores;  // [cell][unit]
};

int64_t bands_of(const CellRule& rule, const Positions& units) {
  return units.rows() / rule.rows();
}

/// Positions made band by band.
class Builder {
 public:
  Builder(const CellRule& rule, const Positions& like)
      : rule_(rule), shape_{like.rows(), like.columns()} {}

  void append(const Band& band) {
    for (int64_t i = 0; i < rule_.rows(); ++i) {
      band.for_each_in_row(
          i, [&](size_t column) { columns_.push_back(static_cast<uint32_t>(column)); });
      begin_.push_back(static_cast<int64_t>(columns_.size()));
    }
  }
  Positions take() { return Positions(shape_, std::move(begin_), std::move(columns_)); }

 private:
  const CellRule& rule_;
  Shape shape_;
  std::vector<int64_t> begin_{0};
  std::vector<uint32_t> columns_;
};

// The units that stay when each cell for which `prunes(cell's flat index)` keeps its best.
template <class Prunes>
Positions prune_where(const CellRule& rule, const Positions& units, std::span<const float> scores,
                      Prunes&& prunes) {
  Band band(rule, units.columns());
  std::vector<char> stays(static_cast<size_t>(units.count()), 1);
  for (int64_t b = 0; b < bands_of(rule, units); ++b) {
    band.load(units, b, scores);
    for (size_t cell = 0; cell < band.cells.size(); ++cell) {
      CellBits& bits = band.cells[cell];
      if (rule.allows(bits) || !prunes(static_cast<size_t>(b) * band.cells.size() + cell)) continue;
      bits = rule.best(0, bits, band.scores_of(cell));
    }
    band.for_each(units, b, [&](size_t place, size_t cell, size_t unit) {
      stays[place] = band.holds(cell, unit) ? 1 : 0;
    });
  }
  return units.filtered([&](size_t place) { return stays[place] != 0; });
}

/// What a cell loses when it is pruned.
struct Loss {
  double sum = 0.0;
  size_t cell = 0;
  int units = 0;
};

std::vector<Loss> losses(const CellRule& rule, const Positions& units,
                         std::span<const float> scores) {
  std::vector<Loss> all;
  Band band(rule, units.columns());
  for (int64_t b = 0; b < bands_of(rule, units); ++b) {
    band.load(units, b, scores);
    for (size_t cell = 0; cell < band.cells.size(); ++cell) {
      const CellBits bits = band.cells[cell];
      if (rule.allows(bits)) continue;
      const std::span<const float> of_cell = band.scores_of(cell);
      auto lost = static_cast<CellBits>(bits & ~rule.best(0, bits, of_cell));
      Loss loss{.cell = static_cast<size_t>(b) * band.cells.size() + cell,
                .units = std::popcount(lost)};
      for (; lost != 0; lost = static_cast<CellBits>(lost & (lost - 1))) {
        const float score = of_cell[static_cast<size_t>(std::countr_zero(lost))];
        if (!std::isnan(score)) loss.sum += static_cast<double>(score);
      }
      all.push_back(loss);
    }
  }
  return all;
}

}  // namespace

Positions prune_cells(const CellRule& rule, const Positions& units, std::span<const float> scores) {
  return prune_where(rule, units, scores, [](size_t) { return true; });
}

Positions prune_cells_to(const CellRule& rule, const Positions& units,
                         std::span<const float> scores, int64_t count) {
  std::vector<Loss> all = losses(rule, units, scores);
  std::ranges::stable_sort(all, {}, &Loss::sum);
  std::vector<bool> pruned(static_cast<size_t>(bands_of(rule, units)) *
                           static_cast<size_t>(units.columns() / rule.columns()));
  int64_t left = units.count();
  for (const Loss& loss : all) {
    if (left <= count) break;
    pruned[loss.cell] = true;
    left -= loss.units;
  }
  return prune_where(rule, units, scores, [&](size_t cell) { return pruned[cell]; });
}

namespace {

// Bands whose scores are asked for at once.
int64_t tile_bands(const CellRule& rule, const Positions& units) {
  return std::max<int64_t>(tile_rows(units.rows(), units.columns()) / rule.rows(), 1);
}

// Fills the cells of a band by its rows of scores.
void fill(const CellRule& rule, const Positions& units, int64_t b, std::span<const float> scores,
          Band& band) {
  band.load(units, b);
  band.load_scores(scores);
  for (size_t cell = 0; cell < band.cells.size(); ++cell) {
    CellBits& bits = band.cells[cell];
    if (std::popcount(bits) < rule.quota()) {
      bits = rule.best(bits, rule.all(), band.scores_of(cell));
    }
  }
}

// Appends what a band, whose first row of units is `first`, has more than `units`.
void append_grown(const CellRule& rule, const Positions& units, int64_t first, const Band& band,
                  std::vector<int64_t>& grown) {
  for (int64_t i = 0; i < rule.rows(); ++i) {
    band.for_each_in_row(i, [&](size_t column) {
      const int64_t flat = (first + i) * units.columns() + static_cast<int64_t>(column);
      if (!units.contains(flat)) grown.push_back(flat);
    });
  }
}

}  // namespace

Positions fill_cells(const CellRule& rule, const Scores& scores, const Positions& units) {
  if (units.columns() == 0) return units;
  Band band(rule, units.columns());
  Builder filled(rule, units);
  std::vector<int64_t> grown;  // by this process of several
  const auto in_band = static_cast<size_t>(rule.rows() * units.columns());
  const auto fill_tile = [&](int64_t first, std::span<float> tile) {
    for (size_t at = 0; at < tile.size(); at += in_band, first += rule.rows()) {
      fill(rule, units, first / rule.rows(), tile.subspan(at, in_band), band);
      if (scores.processes() == 1) {
        filled.append(band);
      } else {
        append_grown(rule, units, first, band, grown);
      }
    }
  };
  for_own_tiles(scores, units.rows(), units.columns(), tile_bands(rule, units) * rule.rows(),
                fill_tile);
  return scores.processes() == 1 ? filled.take() : units.with(gather_all(*scores.peers, grown));
}

Positions fill_cells(const CellRule& rule, const CounterRng& rng, const Positions& units) {
  Band band(rule, units.columns());
  Builder filled(rule, units);
  for (int64_t b = 0; b < bands_of(rule, units); ++b) {
    band.load(units, b);
    for (size_t cell = 0; cell < band.cells.size(); ++cell) {
      CellBits& bits = band.cells[cell];
      if (std::popcount(bits) >= rule.quota()) continue;
      const uint64_t index = static_cast<uint64_t>(b) * band.cells.size() + cell;
      bits = rule.random(bits, rng, index * CellRule::kWords);
    }
    filled.append(band);
  }
  return filled.take();
}

CellPlace find_overfull_cell(const CellRule& rule, const Positions& units, bool* some_full) {
  Band band(rule, units.columns());
  for (int64_t b = 0; b < bands_of(rule, units); ++b) {
    band.load(units, b);
    for (size_t cell = 0; cell < band.cells.size(); ++cell) {
      const CellBits bits = band.cells[cell];
      if (rule.allows(bits)) continue;
      if (bits == rule.all() && some_full != nullptr) {
        *some_full = true;
        continue;
      }
      return {b * rule.rows(), first_column(rule, cell)};
    }
  }
  return {};
}

}  // namespace lacuna
