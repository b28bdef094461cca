// Fresh random operands, and the patterns that sparse ones have.
#pragma once

#include <cstdint>
#include <string_view>

#include "lacuna/framework/core/bit_mask.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna::bench {

/// Uniform in [−1, 1), a function of the name; padding is zero.
Tensor random_tensor(const Shape& shape, std::string_view name, Order order = Order::RowMajor);

/// How unequal the rows and columns of a mask are.
enum class Degrees {
  Uniform,  ///< every position is as likely as any other
  /// As in a trained network: rows and columns have weights exp(0.75 z), z standard normal, and a
  /// position is as likely as its row's and column's weights multiplied. A tenth of the rows then
  /// have 2.6 times the median, a tenth less than 0.38 times.
  Skewed,
};

/// round((1 − sparsity) · rows · columns) positions, drawn without replacement.
BitMask random_mask(int64_t rows, int64_t columns, double sparsity, Degrees degrees);

}  // namespace lacuna::bench
