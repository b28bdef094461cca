#include "lacuna/sparsity/one_shot/complement_fit.hpp"

#include <algorithm>

#include "lacuna/framework/kernels/dense/cholesky.hpp"
#include "lacuna/sparsity/one_shot/damped_factor.hpp"

namespace lacuna {

std::optional<ComplementFit> ComplementFit::of(int64_t features, std::span<const double> gram) {
  ComplementFit fit;
  fit.features_ = features;
  fit.inverse_.assign(gram.begin(), gram.end());
  for (int64_t i = 0; i < features; ++i) {
    double* row = fit.inverse_.data() + i * features;
    std::fill(row + i + 1, row + features, 0.0);
    if (row[i] == 0.0) row[i] = 1.0;
  }
  if (cholesky(features, fit.inverse_.data(), kSmallestPivot) < features) return std::nullopt;
  invert_lower(features, fit.inverse_.data());
  square_lower(features, fit.inverse_.data());
  return fit;
}

bool ComplementFit::fit(std::span<const uint32_t> kept, std::span<const int64_t> rows,
                        const float* weight, float* into) const {
  std::vector<uint32_t> pruned;
  auto next = kept.begin();
  for (uint32_t column = 0; static_cast<int64_t>(column) < features_; ++column) {
    if (next != kept.end() && *next == column) {
      ++next;
    } else {
      pruned.push_back(column);
    }
  }
  const size_t count = pruned.size();
  std::vector<double> lower(count * count), y(count);
  for (size_t i = 0; i < count; ++i) {
    const double* row = inverse_.data() + static_cast<int64_t>(pruned[i]) * features_;
    for (size_t j = 0; j <= i; ++j) lower[i * count + j] = row[pruned[j]];
  }
  if (cholesky(static_cast<int64_t>(count), lower.data()) < static_cast<int64_t>(count)) {
    return false;
  }
  std::vector<double> change(static_cast<size_t>(features_));
  for (const int64_t row : rows) {
    const float* w = weight + row * features_;
    for (size_t i = 0; i < count; ++i) y[i] = w[pruned[i]];
    solve_factored(static_cast<int64_t>(count), lower.data(), y.data());
    std::ranges::fill(change, 0.0);
    for (size_t i = 0; i < count; ++i) {  // a column of the inverse: its row up to the diagonal …
      const int64_t column = pruned[i];
      const double* line = inverse_.data() + column * features_;
      for (int64_t c = 0; c <= column; ++c) change[static_cast<size_t>(c)] += y[i] * line[c];
    }
    for (const uint32_t c : kept) {  // … and what is below it, as the rows of what is kept
      const double* line = inverse_.data() + static_cast<int64_t>(c) * features_;
      double sum = change[c];
      for (size_t i = 0; i < count && pruned[i] < c; ++i) sum += y[i] * line[pruned[i]];
      into[row * features_ + c] = static_cast<float>(w[c] - sum);
    }
  }
  return true;
}

}  // namespace lacuna
