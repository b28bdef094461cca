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
  throw ShapeError(
      fmt::format("not a pattern of {}: the part at row {}, column {} is not there as a whole",
                  pattern.description(), row, column));
}

}  // namespace

Positions to_units(const Positions& elements, const PatternShape& pattern) {
  if (pattern.unit_size() == 1) return elements;
  const int64_t height = pattern.unit_rows(), width = pattern.unit_columns();
  std::vector<int64_t> begin{0};
  std::vector<uint32_t> columns;
  columns.reserve(static_cast<size_t>(elements.count() / pattern.unit_size()));
  for (int64_t first = 0; first < elements.rows(); first += height) {
    const auto top = elements.row(first);
    for (size_t i = 0; i < top.size(); i += static_cast<size_t>(width)) {
      const int64_t unit = top[i] / width;
      const size_t last = i + static_cast<size_t>(width) - 1;
      if (top[i] % width != 0 || last >= top.size() || top[last] / width != unit) {
        refuse_part(pattern, first, unit * width);
      }
      columns.push_back(static_cast<uint32_t>(unit));
    }
    for (int64_t r = first + 1; r < first + height; ++r) {  // all rows alike
      const auto row = elements.row(r);
      const auto [one, other] = std::ranges::mismatch(top, row);
      if (one == top.end() && other == row.end()) continue;
      const uint32_t column = other == row.end() ? *one : *other;
      refuse_part(pattern, first, column / width * width);
    }
    begin.push_back(static_cast<int64_t>(columns.size()));
  }
  return Positions(Shape{elements.rows() / height, elements.columns() / width}, std::move(begin),
                   std::move(columns));
}

Positions to_elements(const Positions& units, const PatternShape& pattern) {
  if (pattern.unit_size() == 1) return units;
  const int64_t height = pattern.unit_rows(), width = pattern.unit_columns();
  std::vector<int64_t> begin{0};
  std::vector<uint32_t> columns;
  columns.reserve(static_cast<size_t>(units.count() * pattern.unit_size()));
  for (int64_t r = 0; r < units.rows() * height; ++r) {
    for (const uint32_t unit : units.row(r / height)) {
      for (int64_t c = 0; c < width; ++c)
        columns.push_back(static_cast<uint32_t>(unit * width + c));
    }
    begin.push_back(static_cast<int64_t>(columns.size()));
  }
  return Positions(Shape{units.rows() * height, units.columns() * width}, std::move(begin),
                   std::move(columns));
}

std::vector<float> unit_scores(const Positions& units, std::span<const float> scores,
                               const PatternShape& pattern) {
  const Sum sum(pattern.norm());
  const int64_t height = pattern.unit_rows(), width = pattern.unit_columns();
  std::vector<float> sums(static_cast<size_t>(units.count()));
  size_t place = 0;  // in scores
  for (int64_t r = 0; r < units.rows() * height; ++r) {
    const auto first = static_cast<size_t>(units.row_begin()[static_cast<size_t>(r / height)]);
    for (size_t unit = first; unit < first + units.row(r / height).size(); ++unit) {
      for (int64_t c = 0; c < width; ++c) sum.add(sums[unit], scores[place++]);
    }
  }
  sum.finish(sums);
  return sums;
}

ScoreRows unit_rows(const ScoreRows& scores, int64_t columns, const PatternShape& pattern) {
  return [&scores, columns, sum = Sum(pattern.norm()), height = pattern.unit_rows(),
          width = pattern.unit_columns()](std::span<const int64_t> rows, std::span<float> into) {
    std::vector<int64_t> elements;
    for (const int64_t unit : rows) {
      for (int64_t r = 0; r < height; ++r) elements.push_back(unit * height + r);
    }
    std::vector<float> tile(elements.size() * static_cast<size_t>(columns));
    scores(elements, tile);
    std::ranges::fill(into, 0.0f);
    const int64_t units = columns / width;
    size_t place = 0;
    for (size_t r = 0; r < elements.size(); ++r) {
      const std::span<float> sums = into.subspan(
          r / static_cast<size_t>(height) * static_cast<size_t>(units), static_cast<size_t>(units));
      for (float& unit : sums) {
        for (int64_t c = 0; c < width; ++c) sum.add(unit, tile[place++]);
      }
    }
    sum.finish(into);
  };
}

}  // namespace lacuna
