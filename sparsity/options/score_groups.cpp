#include "lacuna/sparsity/options/score_groups.h"

#include <fmt/core.h>

#include <algorithm>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/options/group_count.hpp"

namespace lacuna {
namespace {

int64_t rows_of(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[0]; }
int64_t columns_of(const Shape& shape) {
  return rows_of(shape) == 0 ? 0 : shape.numel() / rows_of(shape);
}

}  // namespace

int64_t count_of_groups(const ScoreGroups& groups, const Shape& shape) {
  return groups.count > 0 ? groups.count : std::max<int64_t>(rows_of(shape), 1);
}

void ScoreGroups::require_fit(const std::string& parameter, const Shape& shape) const {
  if (along == Along::Flat || count == 0) return;
  const bool rows = along == Along::Rows;
  const bool has_taps = shape.rank() > 2;
  const int64_t size = rows ? rows_of(shape) : has_taps ? shape[1] : columns_of(shape);
  if (count >= 1 && size % count == 0) return;
  throw ShapeError(
      fmt::format("parameter '{}' of shape {} has {} {}, which {} = {} does not divide", parameter,
                  shape.to_string(), size,
                  rows       ? "rows"
                  : has_taps ? "input channels"
                             : "columns",
                  rows ? "balance_out_groups" : "balance_in_groups", count));
}

GroupIndex::GroupIndex(const ScoreGroups& groups, const Shape& shape)
    : count_(count_of_groups(groups, shape)),
      size_(shape.numel() / count_),
      rows_of_one_(std::max<int64_t>(rows_of(shape), 1)),
      columns_of_one_(std::max<int64_t>(columns_of(shape), 1)) {
  if (groups.along == ScoreGroups::Along::Columns) {
    stride_ = columns_of(shape);
    width_ = offset_ = columns_of_one_ = std::max<int64_t>(stride_ / count_, 1);
  } else {
    width_ = stride_ = std::max<int64_t>(size_, 1);
    offset_ = size_;
    rows_of_one_ = std::max<int64_t>(rows_of_one_ / count_, 1);
  }
}

}  // namespace lacuna
