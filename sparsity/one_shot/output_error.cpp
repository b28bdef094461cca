// output_error: what pruning does to a layer's outputs.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/kernels/dense/double_product.hpp"
#include "lacuna/sparsity/one_shot/one_shot.h"

namespace lacuna {
namespace {

constexpr int64_t kProductChunk = 256;  // rows whose products are there at a time

// The sum over the rows v of a matrix, which `row_of` writes, of v G vᵀ.
template <class RowOf>
double output_square(int64_t rows, const InputGram& gram, RowOf&& row_of) {
  const int64_t features = gram.features();
  const auto size = static_cast<size_t>(std::min(kProductChunk, rows) * features);
  std::vector<double> values(size), products(gram.is_independent() ? 0 : size);
  double sum = 0.0;
  for (int64_t first = 0; first < rows; first += kProductChunk) {
    const int64_t count = std::min(kProductChunk, rows - first);
    for (int64_t r = 0; r < count; ++r) row_of(first + r, values.data() + r * features);
    const auto end = values.begin() + count * features;
    if (gram.is_independent()) {
      sum = std::inner_product(values.begin(), end, values.begin(), sum);
      continue;
    }
    std::ranges::fill(products, 0.0);
    add_product({.m = count,
                 .n = features,
                 .k = features,
                 .a = values.data(),
                 .b = gram.matrix().data(),
                 .c = products.data(),
                 .lda = features,
                 .ldb = features,
                 .ldc = features});
    sum = std::inner_product(values.begin(), end, products.begin(), sum);
  }
  return sum;
}

}  // namespace

OutputError output_error(const Tensor& weight, const Tensor& pruned, const InputGram& gram) {
  if (weight.shape() != pruned.shape() || matrix_columns(weight.shape()) != gram.features()) {
    throw ShapeError(
        fmt::format("shapes do not match: weight {}, pruned weight {}, Gram matrix of {}",
                    weight.shape().to_string(), pruned.shape().to_string(),
                    plural(gram.features(), "feature")));
  }
  const int64_t rows = matrix_rows(weight.shape()), columns = gram.features();
  const float* before = weight.data();
  const float* after = pruned.data();
  return {.outputs = output_square(rows, gram,
                                   [&](int64_t row, double* into) {
                                     std::copy_n(before + row * columns, columns, into);
                                   }),
          .lost = output_square(rows, gram, [&](int64_t row, double* into) {
            for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
              *into++ = static_cast<double>(before[i]) - static_cast<double>(after[i]);
            }
          })};
}

double OutputError::relative() const {
  if (lost <= 0.0) return 0.0;
  return outputs <= 0.0 ? std::numeric_limits<double>::infinity() : lost / outputs;
}

double relative_output_error(const Tensor& weight, const Tensor& pruned, const InputGram& gram) {
  return output_error(weight, pruned, gram).relative();
}

}  // namespace lacuna
