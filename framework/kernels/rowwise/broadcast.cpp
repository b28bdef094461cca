// Plain loops with the last dimension innermost: the compiler vectorizes copies and fills, and sums
// over leading dimensions, the usual case, go to sum_rows.
#include "lacuna/framework/kernels/rowwise/broadcast.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/pointwise/reorder.hpp"
#include "lacuna/framework/kernels/rowwise/reduce.hpp"
#include "lacuna/framework/kernels/task_size.hpp"

namespace lacuna {
namespace {

using Strides = std::array<int64_t, Shape::kMaxRank>;

// Size of dimension i of `shape` when it is aligned at the right with `rank` dimensions.
int64_t aligned_size(const Shape& shape, int i, int rank) {
  const int own = i - (rank - shape.rank());
  return own < 0 ? 1 : shape[own];
}

// Strides of `shape` under the dimensions of `wide`; 0 where it is repeated.
Strides broadcast_strides(const Shape& shape, const Shape& wide) {
  Strides strides{};
  int64_t stride = 1;
  for (int i = wide.rank() - 1; i >= 0; --i) {
    const int64_t size = aligned_size(shape, i, wide.rank());
    strides[static_cast<size_t>(i)] = size == 1 ? 0 : stride;
    stride *= size;
  }
  return strides;
}

// Offset of row `row` of `wide` (all dimensions but the last) under `strides`.
int64_t row_offset(int64_t row, const Shape& wide, const Strides& strides) {
  int64_t offset = 0;
  for (int i = wide.rank() - 2; i >= 0; --i) {
    offset += row % wide[i] * strides[static_cast<size_t>(i)];
    row /= wide[i];
  }
  return offset;
}

// Whether `shape` is the end of `wide`, after dimensions of size 1: it repeats as a whole.
bool is_suffix(const Shape& shape, const Shape& wide) {
  bool repeated = false;
  for (int i = wide.rank() - 1; i >= 0; --i) {
    const int64_t size = aligned_size(shape, i, wide.rank());
    if (size == wide[i] && !repeated) continue;
    repeated = true;
    if (size != 1) return false;
  }
  return true;
}

// Σ over everything that maps to one element: the dimensions where `shape` has size 1, visited in
// row-major order from `base`.
double sum_repeated(const float* x, int64_t base, const std::vector<int64_t>& sizes,
                    const std::vector<int64_t>& strides) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  double total = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = base, rest = i;
    for (size_t k = sizes.size(); k-- > 0;) {
      offset += rest % sizes[k] * strides[k];
      rest /= sizes[k];
    }
    total += x[offset];
  }
  return total;
}

Tensor sum_general(const Tensor& x, const Shape& shape) {
  const Shape& wide = x.shape();
  const Strides own = broadcast_strides(wide, wide);
  std::vector<int64_t> kept_sizes, kept_strides, summed_sizes, summed_strides;
  for (int i = 0; i < wide.rank(); ++i) {
    const bool kept = aligned_size(shape, i, wide.rank()) == wide[i];
    (kept ? kept_sizes : summed_sizes).push_back(wide[i]);
    (kept ? kept_strides : summed_strides).push_back(own[static_cast<size_t>(i)]);
  }
  Tensor sums = Tensor::empty(shape);
  float* out = sums.mutable_data();
  const float* in = x.data();
  const int64_t grain = rows_per_task(wide.numel(), kElementsPerTask * shape.numel());
  parallel_for(shape.numel(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t base = 0, rest = i;
      for (size_t k = kept_sizes.size(); k-- > 0;) {
        base += rest % kept_sizes[k] * kept_strides[k];
        rest /= kept_sizes[k];
      }
      out[i] = static_cast<float>(sum_repeated(in, base, summed_sizes, summed_strides));
    }
  });
  return sums;
}

}  // namespace

Shape broadcast_shape(std::string_view op, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> sizes(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    const int64_t left = aligned_size(a, i, rank), right = aligned_size(b, i, rank);
    if (left != right && left != 1 && right != 1) {
      throw ShapeError(std::string(op) + ": shapes " + a.to_string() + " and " + b.to_string() +
                       " do not broadcast: dimensions must be equal or 1, counted from the last");
    }
    sizes[static_cast<size_t>(i)] = left == 1 ? right : left;
  }
  return Shape(sizes);
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const Tensor rows = reordered(x, Order::RowMajor);
  const Strides strides = broadcast_strides(x.shape(), shape);
  const int64_t columns = shape.features();
  const bool is_repeated = x.shape().features() == 1;
  Tensor wide = Tensor::empty(shape);
  float* out = wide.mutable_data();
  const int64_t grain = rows_per_task(columns);
  parallel_for(columns == 0 ? 0 : shape.batch(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* from = rows.data() + row_offset(row, shape, strides);
      if (is_repeated) {
        std::fill_n(out + row * columns, columns, *from);
      } else {
        std::copy_n(from, columns, out + row * columns);
      }
    }
  });
  return wide;
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const Tensor rows = reordered(x, Order::RowMajor);
  if (shape.numel() == 1) {
    return Tensor::full(shape, static_cast<float>(sum(rows.storage())));
  }
  if (is_suffix(shape, x.shape()) && shape.numel() > 0) {
    const int64_t repeats = x.numel() / shape.numel();
    return sum_rows(rows.reshape({repeats, shape.numel()})).reshape(shape);
  }
  return sum_general(rows, shape);
}

}  // namespace lacuna
