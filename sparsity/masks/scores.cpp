#include "lacuna/sparsity/masks/scores.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/layouts/positions.h"

namespace lacuna {

std::vector<float> magnitudes(std::span<const float> values) {
  std::vector<float> absolute(values.begin(), values.end());
  take_magnitudes(absolute);
  return absolute;
}

void take_magnitudes(std::span<float> values) {
  for (float& value : values) value = std::abs(value);
}

Tensor magnitudes_of_products(const Tensor& a, const Tensor& b) {
  Tensor scores = Tensor::empty(a.shape());
  std::ranges::transform(a.storage(), b.storage(), scores.mutable_storage().begin(),
                         [](float x, float y) { return std::abs(x * y); });
  return scores;
}

ScoreRows rows_of(const Tensor& array) {
  return [rows_major = array.to(Order::RowMajor)](std::span<const int64_t> rows,
                                                  std::span<float> into) {
    require_rows(rows_major.shape(), rows, into.size(), "an array of scores");
    const int64_t columns = matrix_columns(rows_major.shape());
    for (size_t i = 0; i < rows.size(); ++i) {
      std::copy_n(rows_major.data() + rows[i] * columns, columns,
                  into.begin() + static_cast<int64_t>(i) * columns);
    }
  };
}

}  // namespace lacuna
