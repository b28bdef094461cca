#include "lacuna/sparsity/masks/units.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

/// Adds up the scores of units.
class Sum {
 public:
  explicit Sum(PatternShape::Norm norm) : squares_(norm == PatternShape::Norm::L2) {}
  void add(float& sum, float score) const { sum += squares_ ? score * score : std::abs(score); }
  void finish(std::span<float> sums) const {
    if (!squares_) return;
    for (float& sum : sums) sum = std::sqrt(sum);
  }

 private:
  bool squares_;
};

[[noreturn]] void refuse_part(const PatternShape& pattern, int64_t row, int64_t column) {
  throw ShapeError(fmt::format("not a pattern of {}: the part at row {}, column {} is incomplete",
                               pattern.description(), row, column));
}

// The end of those from `first` on that are units (or elements) of the same `width` channels.
size_t end_of_channels(std::span<const uint32_t> columns, size_t first, int64_t width,
                       int64_t taps) {
  const int64_t channels = columns[first] / (width * taps);
  size_t end = first + 1;
  while (end < columns.size() && columns[end] / (width * taps) == channels) ++end;
  return end;
}

// The first column of the unit that an element's column is in.
int64_t unit_of(uint32_t column, int64_t width, int64_t taps) {
  return column / (width * taps) * (width * taps) + column % taps;
}

// Appends the units of a row of elements.
void append_units(const PatternShape& pattern, int64_t taps, int64_t row,
                  std::span<const uint32_t> elements, std::vector<uint32_t>& units) {
  const int64_t width = pattern.unit_columns();
  for (size_t first = 0; first < elements.size();) {
    const size_t end = end_of_channels(elements, first, width, taps);
    const int64_t channels = elements[first] / (width * taps) * (width * taps);  // first column
    size_t there = 0;  // taps of the first of them
    while (first + there < end && elements[first + there] < channels + taps) ++there;
    if (there == 0) refuse_part(pattern, row, unit_of(elements[first], width, taps));
    // The other channels have the same taps.
    for (size_t i = 0; i < there * static_cast<size_t>(width); ++i) {
      const auto expected = static_cast<uint32_t>(elements[first + i % there] +
                                                  i / there * static_cast<size_t>(taps));
      const uint32_t found = first + i < end ? elements[first + i] : expected + 1;
      if (found != expected) {
        refuse_part(pattern, row, unit_of(std::min(found, expected), width, taps));
      }
    }
    if (first + there * static_cast<size_t>(width) != end) {
      refuse_part(pattern, row,
                  unit_of(elements[first + there * static_cast<size_t>(width)], width, taps));
    }
    for (size_t i = 0; i < there; ++i) {
      units.push_back(static_cast<uint32_t>(channels / width) + elements[first + i] -
                      static_cast<uint32_t>(channels));
    }
    first = end;
  }
}

// Calls `visit(place in units)` for the elements of a row of units, ascending.
template <class Visit>
void for_each_element(std::span<const uint32_t> units, int64_t width, int64_t taps, Visit&& visit) {
  for (size_t first = 0; first < units.size();) {
    const size_t end = end_of_channels(units, first, 1, taps);
    for (int64_t c = 0; c < width; ++c) {
      for (size_t i = first; i < end; ++i) visit(i, c);
    }
    first = end;
  }
}

}  // namespace

Positions to_units(const Positions& elements, const PatternShape& pattern, int64_t taps) {
  if (pattern.unit_size() == 1) return elements;
  const int64_t height = pattern.unit_rows(), width = pattern.unit_columns();
  std::vector<int64_t> begin{0};
  std::vector<uint32_t> columns;
  columns.reserve(static_cast<size_t>(elements.count() / pattern.unit_size()));
  for (int64_t first = 0; first < elements.rows(); first += height) {
    const auto top = elements.row(first);
    append_units(pattern, taps, first, top, columns);
    for (int64_t r = first + 1; r < first + height; ++r) {  // all rows alike
      const auto row = elements.row(r);
      const auto [one, other] = std::ranges::mismatch(top, row);
      if (one == top.end() && other == row.end()) continue;
      const uint32_t column = other == row.end() ? *one : *other;
      refuse_part(pattern, first, unit_of(column, width, taps));
    }
    begin.push_back(static_cast<int64_t>(columns.size()));
  }
  return Positions(Shape{elements.rows() / height, elements.columns() / width}, std::move(begin),
                   std::move(columns));
}

Positions to_elements(const Positions& units, const PatternShape& pattern, int64_t taps) {
  if (pattern.unit_size() == 1) return units;
  const int64_t height = pattern.unit_rows(), width = pattern.unit_columns();
  std::vector<int64_t> begin{0};
  std::vector<uint32_t> columns;
  columns.reserve(static_cast<size_t>(units.count() * pattern.unit_size()));
  for (int64_t r = 0; r < units.rows() * height; ++r) {
    const auto row = units.row(r / height);
    for_each_element(row, width, taps, [&](size_t unit, int64_t c) {
      const int64_t channels = row[unit] / taps;
      columns.push_back(static_cast<uint32_t>((channels * width + c) * taps + row[unit] % taps));
    });
    begin.push_back(static_cast<int64_t>(columns.size()));
  }
  return Positions(Shape{units.rows() * height, units.columns() * width}, std::move(begin),
                   std::move(columns));
}

std::vector<float> unit_scores(const Positions& units, std::span<const float> scores,
                               const PatternShape& pattern, int64_t taps) {
  const Sum sum(pattern.norm());
  const int64_t height = pattern.unit_rows(), width = pattern.unit_columns();
  std::vector<float> sums(static_cast<size_t>(units.count()));
  size_t place = 0;  // in scores
  for (int64_t r = 0; r < units.rows() * height; ++r) {
    const auto first = static_cast<size_t>(units.row_begin()[static_cast<size_t>(r / height)]);
    for_each_element(units.row(r / height), width, taps,
                     [&](size_t unit, int64_t) { sum.add(sums[first + unit], scores[place++]); });
  }
  sum.finish(sums);
  return sums;
}

namespace {

// The rows of elements that rows of units are made of.
std::vector<int64_t> rows_of_elements(std::span<const int64_t> units, int64_t height) {
  std::vector<int64_t> elements;
  elements.reserve(units.size() * static_cast<size_t>(height));
  for (const int64_t unit : units) {
    for (int64_t r = 0; r < height; ++r) elements.push_back(unit * height + r);
  }
  return elements;
}

// The scores of rows of units from those of their rows of elements.
void sum_units(std::span<const float> elements, int64_t columns, const PatternShape& pattern,
               int64_t taps, std::span<float> into) {
  if (into.empty()) return;
  const Sum sum(pattern.norm());
  const auto height = static_cast<size_t>(pattern.unit_rows());
  const int64_t width = pattern.unit_columns();
  const size_t units = static_cast<size_t>(columns / width),
               rows = elements.size() / static_cast<size_t>(columns);
  std::ranges::fill(into, 0.0f);
  size_t place = 0;
  for (size_t r = 0; r < rows; ++r) {
    const std::span<float> sums = into.subspan(r / height * units, units);
    for (size_t first = 0; first < units; first += static_cast<size_t>(taps)) {
      for (int64_t c = 0; c < width; ++c) {  // the taps of channel first / taps · width + c
        for (float& unit : sums.subspan(first, static_cast<size_t>(taps))) {
          sum.add(unit, elements[place++]);
        }
      }
    }
  }
  sum.finish(into);
}

}  // namespace

Scores unit_rows(const Scores& scores, int64_t columns, const PatternShape& pattern, int64_t taps) {
  Scores of_units = scores;
  of_units.own_rows = [&scores, columns, taps, pattern](std::span<const std::vector<int64_t>> rows,
                                                        std::span<float> into) {
    // Of several processes so many rows of units at once that their elements are few: of each
    // process's a part is computed.
    constexpr int64_t kTile = int64_t{1} << 18;
    const auto height = static_cast<size_t>(pattern.unit_rows()),
               across = static_cast<size_t>(columns / pattern.unit_columns());
    size_t most = 0;
    for (const std::vector<int64_t>& of_process : rows) most = std::max(most, of_process.size());
    const auto in_row = static_cast<int64_t>(height) * std::max<int64_t>(columns, 1);
    const size_t step =
        rows.size() == 1 ? most : static_cast<size_t>(std::max<int64_t>(kTile / in_row, 1));
    std::vector<float> tile;
    for (size_t begin = 0; begin < most; begin += step) {
      std::vector<std::vector<int64_t>> elements;
      for (const std::vector<int64_t>& of_process : rows) {
        const size_t first = std::min(begin, of_process.size());
        const size_t count = std::min(step, of_process.size() - first);
        elements.push_back(
            rows_of_elements(std::span(of_process).subspan(first, count), pattern.unit_rows()));
      }
      const size_t own = elements[static_cast<size_t>(scores.rank())].size();
      tile.resize(own * static_cast<size_t>(columns));
      scores.own_rows(elements, tile);
      const size_t done = std::min(begin * across, into.size());
      sum_units(tile, columns, pattern, taps, into.subspan(done, own / height * across));
    }
  };
  return of_units;
}

}  // namespace lacuna
