#include "lacuna/framework/core/shape.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"

namespace lacuna {

Shape::Shape(std::initializer_list<int64_t> sizes) { assign({sizes.begin(), sizes.size()}); }

Shape::Shape(std::span<const int64_t> sizes) { assign(sizes); }

void Shape::assign(std::span<const int64_t> sizes) {
  if (sizes.size() > kMaxRank) {
    throw ShapeError(
        fmt::format("a tensor has at most {} dimensions, found {}", kMaxRank, sizes.size()));
  }
  rank_ = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
  numel_ = 1;
  constexpr int64_t kLimit = int64_t{1} << 62;
  for (const int64_t size : sizes) {
    if (size < 0) throw ShapeError("negative dimension in shape " + to_string());
    if (size != 0 && numel_ > kLimit / size) {
      throw ShapeError("shape " + to_string() + " has too many elements for 64-bit indices");
    }
    numel_ *= size;
  }
}

int64_t Shape::operator[](int i) const {
  const int index = i < 0 ? i + rank_ : i;
  if (index < 0 || index >= rank_) {
    throw ShapeError(fmt::format("there is no dimension {} in shape {}", i, to_string()));
  }
  return sizes_[static_cast<size_t>(index)];
}

int64_t Shape::batch() const {
  int64_t batch = 1;
  for (int i = 0; i + 1 < rank_; ++i) batch *= sizes_[static_cast<size_t>(i)];
  return batch;
}

Shape Shape::with_features(int64_t features) const {
  if (rank_ == 0) throw ShapeError("a scalar has no feature dimension");
  std::vector<int64_t> sizes(sizes_.begin(), sizes_.begin() + rank_);
  sizes.back() = features;
  return Shape(sizes);
}

Shape Shape::without_batch() const {
  if (rank_ == 0) throw ShapeError("a scalar has no batch dimension");
  return Shape(sizes().subspan(1));
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(sizes_[static_cast<size_t>(i)]);
  }
  return text + "]";
}

bool operator==(const Shape& a, const Shape& b) {
  return std::equal(a.sizes().begin(), a.sizes().end(), b.sizes().begin(), b.sizes().end());
}

int64_t matrix_rows(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[0]; }

int64_t matrix_columns(const Shape& shape) {
  const int64_t rows = matrix_rows(shape);
  const int64_t columns = rows == 0 ? 0 : shape.numel() / rows;
  if (columns > int64_t{std::numeric_limits<uint32_t>::max()}) {
    throw ShapeError(fmt::format("shape {} has {} columns; the limit for positions is 2^32 - 1",
                                 shape.to_string(), columns));
  }
  return columns;
}

void require_rows(const Shape& shape, std::span<const int64_t> rows, size_t values,
                  std::string_view what) {
  const int64_t columns = matrix_columns(shape), available = matrix_rows(shape);
  for (const int64_t row : rows) {
    if (row >= 0 && row < available) continue;
    throw ShapeError(fmt::format("{} of shape {} has no row {}", what, shape.to_string(), row));
  }
  if (values == rows.size() * static_cast<size_t>(columns)) return;
  throw ShapeError(fmt::format("{} of shape {} has rows of {}, found {} for {}", what,
                               shape.to_string(), plural(columns, "value"),
                               plural(static_cast<int64_t>(values), "value"),
                               plural(static_cast<int64_t>(rows.size()), "row")));
}

int64_t matrix_taps(const Shape& shape) {
  int64_t taps = 1;
  for (int i = 2; i < shape.rank(); ++i) taps *= shape[i];
  return std::max<int64_t>(taps, 1);
}

}  // namespace lacuna
