// relative_output_error: what pruning does to a layer's outputs.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/sparsity/one_shot/one_shot.h"

namespace lacuna {
namespace {

// The sum over rows v of v G vᵀ.
double output_square(const std::vector<double>& rows, const InputGram& gram) {
  const int64_t features = gram.features();
  const int64_t count = features == 0 ? 0 : static_cast<int64_t>(rows.size()) / features;
  const std::span<const double> matrix = gram.matrix();
  std::vector<double> sums(static_cast<size_t>(count), 0.0);
  parallel_for(count, 4, [&](int64_t first, int64_t last) {
    std::vector<double> product(static_cast<size_t>(features));
    for (int64_t r = first; r < last; ++r) {
      const double* row = rows.data() + r * features;
      std::ranges::fill(product, 0.0);
      for (int64_t j = 0; j < features; ++j) {
        if (row[j] == 0.0) continue;
        const double* of = matrix.data() + j * features;
        for (int64_t c = 0; c < features; ++c) product[static_cast<size_t>(c)] += row[j] * of[c];
      }
      for (int64_t c = 0; c < features; ++c) {
        sums[static_cast<size_t>(r)] += product[static_cast<size_t>(c)] * row[c];
      }
    }
  });
  double sum = 0.0;
  for (const double of_row : sums) sum += of_row;
  return sum;
}

}  // namespace

double relative_output_error(const Tensor& weight, const Tensor& pruned, const InputGram& gram) {
  if (weight.shape() != pruned.shape() || matrix_columns(weight.shape()) != gram.features()) {
    throw ShapeError(fmt::format("a weight {}, pruned {}, and a Gram matrix of {} features",
                                 weight.shape().to_string(), pruned.shape().to_string(),
                                 gram.features()));
  }
  const auto count = static_cast<size_t>(weight.numel());
  std::vector<double> values(weight.data(), weight.data() + count);
  const double whole = output_square(values, gram);
  for (size_t i = 0; i < count; ++i) values[i] -= static_cast<double>(pruned.data()[i]);
  const double lost = output_square(values, gram);
  if (lost == 0.0) return 0.0;
  return whole == 0.0 ? std::numeric_limits<double>::infinity() : lost / whole;
}

}  // namespace lacuna
