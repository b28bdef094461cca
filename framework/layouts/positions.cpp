#include "lacuna/framework/layouts/positions.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {

int64_t matrix_rows(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[0]; }

int64_t matrix_columns(const Shape& shape) {
  const int64_t rows = matrix_rows(shape);
  const int64_t columns = rows == 0 ? 0 : shape.numel() / rows;
  if (columns > int64_t{std::numeric_limits<uint32_t>::max()}) {
    throw ShapeError("shape " + shape.to_string() + " has " + std::to_string(columns) +
                     " columns; positions hold fewer than 2^32");
  }
  return columns;
}

Positions::Positions(const Shape& shape)
    : columns_of_shape_(matrix_columns(shape)),
      row_begin_(static_cast<size_t>(matrix_rows(shape)) + 1) {}

Positions::Positions(const Shape& shape, std::vector<int64_t> row_begin,
                     std::vector<uint32_t> columns)
    : columns_of_shape_(matrix_columns(shape)),
      row_begin_(std::move(row_begin)),
      column_(std::move(columns)) {
  const auto fail = [&](const std::string& what) {
    throw ShapeError("positions of shape " + shape.to_string() + ": " + what);
  };
  if (static_cast<int64_t>(row_begin_.size()) != matrix_rows(shape) + 1 ||
      row_begin_.front() != 0 || row_begin_.back() != static_cast<int64_t>(column_.size())) {
    fail("the rows' beginnings do not fit " + std::to_string(column_.size()) + " positions");
  }
  for (size_t r = 0; r + 1 < row_begin_.size(); ++r) {
    if (row_begin_[r] > row_begin_[r + 1])
      fail("row " + std::to_string(r) + " ends before it begins");
  }
  for (int64_t r = 0; r < rows(); ++r) {
    int64_t last = -1;
    for (const uint32_t c : row(r)) {
      if (c <= last || c >= columns_of_shape_) {
        fail("row " + std::to_string(r) + " has column " + std::to_string(c) +
             (c <= last ? " out of order" : ", beyond the last"));
      }
      last = c;
    }
  }
}

Positions Positions::of(const Shape& shape, const BitMask& mask) {
  if (mask.size() != shape.numel()) {
    throw ShapeError("a mask for shape " + shape.to_string() + " needs " +
                     std::to_string(shape.numel()) + " bits, found " + std::to_string(mask.size()));
  }
  Positions positions(shape);
  positions.column_.reserve(static_cast<size_t>(mask.count()));
  int64_t row = 0, row_start = 0;
  const int64_t columns = positions.columns_of_shape_;
  mask.for_each([&](int64_t flat) {
    while (flat - row_start >= columns) {
      row_start += columns;
      positions.row_begin_[static_cast<size_t>(++row)] =
          static_cast<int64_t>(positions.column_.size());
    }
    positions.column_.push_back(static_cast<uint32_t>(flat - row_start));
  });
  while (row < positions.rows()) {
    positions.row_begin_[static_cast<size_t>(++row)] =
        static_cast<int64_t>(positions.column_.size());
  }
  return positions;
}

Positions Positions::of(const Shape& shape, std::span<const int64_t> flat) {
  Positions empty(shape);
  const int64_t columns = empty.columns_of_shape_;
  std::vector<int64_t> row_begin(empty.row_begin_.size());
  std::vector<uint32_t> column(flat.size());
  for (size_t i = 0; i < flat.size(); ++i) {
    if (flat[i] < 0 || flat[i] >= shape.numel()) {
      throw ShapeError("position " + std::to_string(flat[i]) + " is outside shape " +
                       shape.to_string());
    }
    ++row_begin[static_cast<size_t>(flat[i] / columns) + 1];
    column[i] = static_cast<uint32_t>(flat[i] % columns);
  }
  for (size_t r = 1; r < row_begin.size(); ++r) row_begin[r] += row_begin[r - 1];
  return Positions(shape, std::move(row_begin), std::move(column));
}

Positions Positions::all(const Shape& shape) {
  Positions positions(shape);
  const int64_t columns = positions.columns_of_shape_;
  positions.column_.reserve(static_cast<size_t>(shape.numel()));
  for (int64_t r = 0; r < positions.rows(); ++r) {
    for (int64_t c = 0; c < columns; ++c) positions.column_.push_back(static_cast<uint32_t>(c));
    positions.row_begin_[static_cast<size_t>(r) + 1] = (r + 1) * columns;
  }
  return positions;
}

BitMask Positions::to_mask() const {
  BitMask mask = BitMask::zeros(rows() * columns_of_shape_);
  for_each([&](int64_t flat) { mask.set(flat); });
  return mask;
}

bool Positions::contains(int64_t flat) const {
  if (columns_of_shape_ == 0) return false;
  const std::span<const uint32_t> there = row(flat / columns_of_shape_);
  return std::ranges::binary_search(there, static_cast<uint32_t>(flat % columns_of_shape_));
}

namespace {

// The columns of flat indices, row by row, ascending: a counting sort by row, then each row's few.
void sort_by_row(std::span<const int64_t> flat, int64_t columns, std::vector<int64_t>& row_begin,
                 std::vector<uint32_t>& column) {
  for (const int64_t i : flat) ++row_begin[static_cast<size_t>(i / columns) + 1];
  for (size_t r = 1; r < row_begin.size(); ++r) row_begin[r] += row_begin[r - 1];
  std::vector<int64_t> next(row_begin.begin(), row_begin.end() - 1);
  for (const int64_t i : flat) {
    const int64_t row = i / columns;
    column[static_cast<size_t>(next[static_cast<size_t>(row)]++)] =
        static_cast<uint32_t>(i - row * columns);
  }
  for (size_t r = 0; r + 1 < row_begin.size(); ++r) {
    const auto begin = column.begin() + row_begin[r], end = column.begin() + row_begin[r + 1];
    if (!std::is_sorted(begin, end)) std::sort(begin, end);
  }
}

}  // namespace

Positions Positions::with(std::span<const int64_t> flat) const {
  for (const int64_t i : flat) {
    if (i < 0 || i >= rows() * columns_of_shape_) {
      throw ShapeError("position " + std::to_string(i) + " is outside " + std::to_string(rows()) +
                       " rows of " + std::to_string(columns_of_shape_));
    }
  }
  std::vector<int64_t> begin(row_begin_.size());
  std::vector<uint32_t> added(flat.size());
  sort_by_row(flat, columns_of_shape_, begin, added);
  Positions all;
  all.columns_of_shape_ = columns_of_shape_;
  all.row_begin_ = std::move(begin);
  all.column_.resize(column_.size() + added.size());
  size_t from = 0, into = 0;
  for (size_t r = 0; r + 1 < row_begin_.size(); ++r) {
    const auto end = static_cast<size_t>(all.row_begin_[r + 1]);
    const auto mine = column_.begin() + row_begin_[r], mine_end = column_.begin() + row_begin_[r + 1];
    std::merge(mine, mine_end, added.begin() + static_cast<int64_t>(from),
               added.begin() + static_cast<int64_t>(end),
               all.column_.begin() + static_cast<int64_t>(into));
    into += static_cast<size_t>(mine_end - mine) + end - from;
    from = end;
    all.row_begin_[r] += row_begin_[r];
  }
  all.row_begin_.back() += row_begin_.back();
  return all;
}

int64_t count_common(const Positions& a, const Positions& b) {
  int64_t common = 0;
  for (int64_t r = 0; r < a.rows(); ++r) {
    const std::span<const uint32_t> x = a.row(r), y = b.row(r);
    for (size_t i = 0, j = 0; i < x.size() && j < y.size();) {  // no branch to mispredict
      const uint32_t u = x[i], v = y[j];
      common += u == v ? 1 : 0;
      i += u <= v ? 1 : 0;
      j += v <= u ? 1 : 0;
    }
  }
  return common;
}

std::vector<int32_t> places_in(const Positions& from, const Positions& to) {
  std::vector<int32_t> places(static_cast<size_t>(to.count()), -1);
  for (int64_t r = 0; r < to.rows(); ++r) {
    const std::span<const uint32_t> wanted = to.row(r), there = from.row(r);
    const int64_t first = from.row_begin()[static_cast<size_t>(r)];
    int32_t* place = places.data() + to.row_begin()[static_cast<size_t>(r)];
    for (size_t i = 0, j = 0; i < there.size() && j < wanted.size();) {  // nothing to mispredict
      const uint32_t u = there[i], v = wanted[j];
      place[j] = u == v ? static_cast<int32_t>(first + static_cast<int64_t>(i)) : -1;
      i += u <= v ? 1 : 0;
      j += v <= u ? 1 : 0;
    }
  }
  return places;
}

}  // namespace lacuna
