#include "lacuna/framework/kernels/conv/every_tap.hpp"

#include <numeric>

#include "lacuna/framework/core/array.h"

namespace lacuna {

bool has_every_tap_products(const ConvolutionShape& shape) {
  constexpr int64_t kMost = 36;
  return shape.groups == 1 && shape.in_channels * shape.taps() <= kMost;
}

SparseConvolution of_every_tap(const ConvolutionShape& shape) {
  const int64_t columns = shape.in_channels * shape.taps();
  Array<int64_t> row_begin(static_cast<size_t>(shape.out_channels + 1));
  Array<uint32_t> column(static_cast<size_t>(shape.out_channels * columns));
  for (size_t row = 0; row < row_begin.size(); ++row) {
    row_begin[row] = static_cast<int64_t>(row) * columns;
  }
  for (int64_t row = 0; row < shape.out_channels; ++row) {
    const auto first = column.begin() + row * columns;
    std::iota(first, first + columns, uint32_t{0});
  }
  return make_sparse_convolution(shape, {row_begin, column});
}

}  // namespace lacuna
