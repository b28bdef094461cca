#include "lacuna/framework/layouts/positions.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/select/bit_columns.hpp"
#include "lacuna/framework/layouts/row_match.hpp"

namespace lacuna {

Positions::Positions(const Shape& shape)
    : columns_of_shape_(matrix_columns(shape)),
      row_begin_(static_cast<size_t>(matrix_rows(shape)) + 1) {}

namespace {

// Whether columns ascend and are below `end`. All are compared, without branches.
bool ascends(std::span<const uint32_t> columns, int64_t end) {
  if (columns.empty()) return true;
  uint32_t falls = 0;
  for (size_t i = 1; i < columns.size(); ++i) falls |= columns[i - 1] >= columns[i] ? 1u : 0u;
  return falls == 0 && columns.back() < end;
}

}  // namespace

Positions::Positions(const Shape& shape, std::vector<int64_t> row_begin,
                     std::span<const uint32_t> columns)
    : Positions(shape, std::move(row_begin), Array<uint32_t>(columns.begin(), columns.end())) {}

Positions::Positions(const Shape& shape, std::vector<int64_t> row_begin, Array<uint32_t> columns)
    : columns_of_shape_(matrix_columns(shape)),
      row_begin_(std::move(row_begin)),
      column_(std::move(columns)) {
  const auto fail = [&](const std::string& what) {
    throw ShapeError("positions of shape " + shape.to_string() + ": " + what);
  };
  if (static_cast<int64_t>(row_begin_.size()) != matrix_rows(shape) + 1 ||
      row_begin_.front() != 0 || row_begin_.back() != static_cast<int64_t>(column_.size())) {
    fail(fmt::format("the row offsets do not match {} positions", column_.size()));
  }
  for (size_t r = 0; r + 1 < row_begin_.size(); ++r) {
    if (row_begin_[r] > row_begin_[r + 1]) fail(fmt::format("row {} ends before it begins", r));
  }
  for (int64_t r = 0; r < rows(); ++r) {
    if (ascends(row(r), columns_of_shape_)) continue;
    int64_t last = -1;
    for (const uint32_t c : row(r)) {
      if (c <= last || c >= columns_of_shape_) {
        fail(fmt::format("row {} has column {}{}", r, c,
                         c <= last ? " out of order" : ", beyond the last"));
      }
      last = c;
    }
  }
}

Positions Positions::of(const Shape& shape, const BitMask& mask) {
  if (mask.size() != shape.numel()) {
    throw ShapeError(fmt::format("a mask for shape {} needs {} bits, found {}", shape.to_string(),
                                 shape.numel(), mask.size()));
  }
  Positions positions(shape);
  const auto count = static_cast<size_t>(mask.count());
  positions.column_.resize(count + kBitColumnsSlack);
  const int64_t columns = positions.columns_of_shape_;
  int64_t place = 0;
  for (int64_t r = 0; r < positions.rows(); ++r) {
    place +=
        bit_columns(mask.words(), r * columns, (r + 1) * columns, positions.column_.data() + place);
    positions.row_begin_[static_cast<size_t>(r) + 1] = place;
  }
  positions.column_.resize(count);
  return positions;
}

Positions Positions::of(const Shape& shape, std::span<const int64_t> flat) {
  Positions empty(shape);
  const int64_t columns = empty.columns_of_shape_;
  std::vector<int64_t> row_begin(empty.row_begin_.size());
  Array<uint32_t> column(flat.size());
  for (size_t i = 0; i < flat.size(); ++i) {
    if (flat[i] < 0 || flat[i] >= shape.numel()) {
      throw ShapeError(fmt::format("position {} is outside shape {}", flat[i], shape.to_string()));
    }
    if (i > 0 && flat[i] <= flat[i - 1]) {
      throw ShapeError(
          fmt::format("position {} follows {}; positions must ascend", flat[i], flat[i - 1]));
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
  for_each_word([&](int64_t word, uint64_t bits) { mask.set_in_word(word, bits); });
  return mask;
}

bool Positions::contains(int64_t flat) const {
  if (columns_of_shape_ == 0) return false;
  const std::span<const uint32_t> there = row(flat / columns_of_shape_);
  return std::ranges::binary_search(there, static_cast<uint32_t>(flat % columns_of_shape_));
}

namespace {

// The beginnings of the rows and the columns of ascending flat indices.
void split_rows(std::span<const int64_t> flat, int64_t columns, std::vector<int64_t>& row_begin,
                Array<uint32_t>& column) {
  size_t i = 0;
  for (size_t r = 0; r + 1 < row_begin.size(); ++r) {
    const int64_t first = static_cast<int64_t>(r) * columns, end = first + columns;
    for (; i < flat.size() && flat[i] < end; ++i)
      column[i] = static_cast<uint32_t>(flat[i] - first);
    row_begin[r + 1] = static_cast<int64_t>(i);
  }
}

// The same for flat indices in any order: a counting sort by row, then a sort within each row.
void sort_by_row(std::span<const int64_t> flat, int64_t columns, std::vector<int64_t>& row_begin,
                 Array<uint32_t>& column) {
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

// Merges two ascending rows without a common column; the order of two columns takes no branch.
void merge_rows(std::span<const uint32_t> a, std::span<const uint32_t> b, uint32_t* into) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    const uint32_t u = a[i], v = b[j];
    *into++ = std::min(u, v);
    i += u < v ? 1 : 0;
    j += u < v ? 0 : 1;
  }
  into = std::copy(a.begin() + static_cast<int64_t>(i), a.end(), into);
  std::copy(b.begin() + static_cast<int64_t>(j), b.end(), into);
}

// The same with one bit per column, all zero before and after: the steps of a merge would wait for
// each other's comparisons.
void merge_rows(std::span<const uint32_t> a, std::span<const uint32_t> b, std::span<uint64_t> words,
                uint32_t* into) {
  uint32_t word = 0;
  uint64_t bits = 0;
  for (const uint32_t c : a) {  // written at each step, never read: no branch, no dependency
    bits = (c >> 6 == word ? bits : 0) | uint64_t{1} << (c & 63);
    word = c >> 6;
    words[word] = bits;
  }
  for (const uint32_t c : b) words[c >> 6] |= uint64_t{1} << (c & 63);
  bit_columns(words, 0, static_cast<int64_t>(words.size()) << 6, into);
  std::ranges::fill(words, 0);
}

}  // namespace

Positions Positions::with(std::span<const int64_t> flat) const {
  constexpr size_t kColumnsForBits = 16;  // per position, at most
  const int64_t numel = rows() * columns_of_shape_;
  bool is_sorted = true, is_outside = false;
  for (size_t i = 0; i < flat.size(); ++i) {
    is_outside |= flat[i] < 0 || flat[i] >= numel;
    is_sorted &= i == 0 || flat[i - 1] < flat[i];
  }
  if (is_outside) {
    const auto found = std::ranges::find_if(flat, [&](int64_t i) { return i < 0 || i >= numel; });
    throw ShapeError(
        fmt::format("position {} is outside {} rows of {}", *found, rows(), columns_of_shape_));
  }
  std::vector<int64_t> begin(row_begin_.size());
  Array<uint32_t> added(flat.size());
  (is_sorted ? split_rows : sort_by_row)(flat, columns_of_shape_, begin, added);
  Positions all;
  all.columns_of_shape_ = columns_of_shape_;
  all.row_begin_ = std::move(begin);
  all.column_.resize(column_.size() + added.size() + kBitColumnsSlack);
  std::vector<uint64_t> words(static_cast<size_t>((columns_of_shape_ + 63) / 64));
  size_t from = 0, into = 0;
  for (size_t r = 0; r + 1 < row_begin_.size(); ++r) {
    const auto end = static_cast<size_t>(all.row_begin_[r + 1]);
    const std::span<const uint32_t> mine = row(static_cast<int64_t>(r));
    const auto others = std::span<const uint32_t>(added).subspan(from, end - from);
    const size_t count = mine.size() + others.size();
    if (count * kColumnsForBits >= static_cast<size_t>(columns_of_shape_)) {
      merge_rows(mine, others, words, all.column_.data() + into);
    } else {
      merge_rows(mine, others, all.column_.data() + into);
    }
    into += count;
    from = end;
    all.row_begin_[r] += row_begin_[r];
  }
  all.row_begin_.back() += row_begin_.back();
  all.column_.resize(into);
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

Array<int32_t> places_in(const Positions& from, const Positions& to) {
  Array<int32_t> places(static_cast<size_t>(to.count()));
  RowMatch match(from.columns());
  for (int64_t r = 0; r < to.rows(); ++r) {
    const auto first = static_cast<uint32_t>(from.row_begin()[static_cast<size_t>(r)]);
    int32_t* place = places.data() + to.row_begin()[static_cast<size_t>(r)];
    match(
        from.row(r), [&](size_t i) { return first + static_cast<uint32_t>(i) + 1; }, to.row(r),
        [&](size_t j, uint32_t number) { place[j] = static_cast<int32_t>(number) - 1; });
  }
  return places;
}

}  // namespace lacuna
