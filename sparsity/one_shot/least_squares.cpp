// fit_least_squares: the weights on a mask whose outputs are nearest to those of another weight.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/kernels/dense/cholesky.hpp"
#include "lacuna/framework/kernels/dense/double_product.hpp"
#include "lacuna/sparsity/one_shot/complement_fit.hpp"
#include "lacuna/sparsity/one_shot/damped_factor.hpp"
#include "lacuna/sparsity/one_shot/one_shot_problem.hpp"

namespace lacuna {
namespace {

constexpr int64_t kChunk = 256;  // rows whose right-hand sides are there at a time

class LeastSquares {
 public:
  LeastSquares(const Tensor& weight, const InputGram& gram, const MaskSet& mask, double damping);
  /// The rows' weights; what is not in the mask is zero.
  Tensor fit();
  /// The most damping that any row needed, and how many rows needed more than was asked for.
  double most_damping() const { return *std::ranges::max_element(damping_of_row_); }
  int64_t damped_rows() const {
    return std::ranges::count_if(damping_of_row_, [&](double d) { return d > damping_; });
  }

 private:
  std::vector<size_t> groups(std::span<const int64_t> rows) const;
  bool prefers_complement(std::span<const int64_t> rows) const;
  std::vector<int64_t> fit_by_complement(std::span<const int64_t> rows, float* into);
  std::vector<uint32_t> live_columns(int64_t row) const;
  std::vector<double> right_sides(std::span<const int64_t> rows) const;
  void fit_chunk(std::span<const int64_t> rows, float* into);
  void fit_rows(std::span<const int64_t> rows, const double* right, float* into);
  bool factor(std::span<const uint32_t> columns, double damping, std::vector<double>& lower) const;

  const Tensor& weight_;
  const Positions& positions_;
  std::span<const double> gram_;
  int64_t columns_;
  double damping_, mean_ = 0.0;
  std::vector<double> damping_of_row_;
};

LeastSquares::LeastSquares(const Tensor& weight, const InputGram& gram, const MaskSet& mask,
                           double damping)
    : weight_(weight),
      positions_(mask.positions()),
      gram_(gram.matrix()),
      columns_(gram.features()),
      damping_(damping),
      damping_of_row_(static_cast<size_t>(matrix_rows(weight.shape())), damping) {
  for (int64_t i = 0; i < columns_; ++i) mean_ += gram_[static_cast<size_t>(i * columns_ + i)];
  if (columns_ > 0) mean_ /= static_cast<double>(columns_);
}

std::vector<uint32_t> LeastSquares::live_columns(int64_t row) const {
  std::vector<uint32_t> live;
  for (const uint32_t column : positions_.row(row)) {
    if (gram_[static_cast<size_t>(column * (columns_ + 1))] > 0.0) live.push_back(column);
  }
  return live;
}

// Rows of one support stand together, so that they share a factorization.
Tensor LeastSquares::fit() {
  Tensor fitted = Tensor::zeros(weight_.shape());
  std::vector<int64_t> rows(damping_of_row_.size());
  std::iota(rows.begin(), rows.end(), int64_t{0});
  std::ranges::stable_sort(rows, [&](int64_t a, int64_t b) {
    return std::ranges::lexicographical_compare(positions_.row(a), positions_.row(b));
  });
  if (prefers_complement(rows)) rows = fit_by_complement(rows, fitted.mutable_data());
  const auto chunk = static_cast<size_t>(kChunk);
  for (size_t first = 0; first < rows.size(); first += chunk) {
    fit_chunk(std::span(rows).subspan(first, std::min(chunk, rows.size() - first)),
              fitted.mutable_data());
  }
  return fitted;
}

// Where runs of rows of one support begin, and the end of the last.
std::vector<size_t> LeastSquares::groups(std::span<const int64_t> rows) const {
  std::vector<size_t> begins;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (r == 0 || !std::ranges::equal(positions_.row(rows[r - 1]), positions_.row(rows[r]))) {
      begins.push_back(r);
    }
  }
  begins.push_back(rows.size());
  return begins;
}

// Whether fewer operations are needed so, the inverse of the whole matrix among them.
bool LeastSquares::prefers_complement(std::span<const int64_t> rows) const {
  if (damping_ > 0.0) return false;
  const auto all = static_cast<double>(columns_);
  double by_kept = 0.0, by_pruned = all * all * all;
  const std::vector<size_t> begins = groups(rows);
  for (size_t g = 0; g + 1 < begins.size(); ++g) {
    const auto kept = static_cast<double>(positions_.row(rows[begins[g]]).size());
    const double pruned = all - kept;
    by_kept += kept * kept * kept / 3.0;
    by_pruned += pruned * pruned * pruned / 3.0;
    by_pruned += static_cast<double>(begins[g + 1] - begins[g]) * all * pruned;
  }
  return by_pruned < by_kept;
}

// Returns the rows that it could not fit.
std::vector<int64_t> LeastSquares::fit_by_complement(std::span<const int64_t> rows, float* into) {
  std::vector<int64_t> left;
  const std::optional<ComplementFit> complement = ComplementFit::of(columns_, gram_);
  if (!complement) return {rows.begin(), rows.end()};
  const std::vector<size_t> begins = groups(rows);
  std::vector<char> fits(begins.size() - 1);
  int64_t fewest = columns_;
  for (const int64_t row : rows) {
    fewest = std::min(fewest, static_cast<int64_t>(positions_.row(row).size()));
  }
  const auto fit_one = [&](int64_t index) {
    const auto g = static_cast<size_t>(index);
    const std::span<const int64_t> group = rows.subspan(begins[g], begins[g + 1] - begins[g]);
    fits[g] = complement->fit(positions_.row(group.front()), group, weight_.data(), into) ? 1 : 0;
  };
  const int64_t largest = columns_ - fewest;
  for_each_within(columns_ * columns_ / 2, static_cast<int64_t>(fits.size()), largest * largest,
                  fit_one);
  for (size_t g = 0; g < fits.size(); ++g) {
    if (fits[g] != 0) continue;
    left.insert(left.end(), rows.begin() + static_cast<ptrdiff_t>(begins[g]),
                rows.begin() + static_cast<ptrdiff_t>(begins[g + 1]));
  }
  return left;
}

// H w of some rows.
std::vector<double> LeastSquares::right_sides(std::span<const int64_t> rows) const {
  const auto count = static_cast<int64_t>(rows.size());
  std::vector<double> weights(static_cast<size_t>(count * columns_)), right(weights.size(), 0.0);
  for (int64_t r = 0; r < count; ++r) {
    std::copy_n(weight_.data() + rows[static_cast<size_t>(r)] * columns_, columns_,
                weights.data() + r * columns_);
  }
  add_product({.m = count,
               .n = columns_,
               .k = columns_,
               .a = weights.data(),
               .b = gram_.data(),
               .c = right.data(),
               .lda = columns_,
               .ldb = columns_,
               .ldc = columns_});
  return right;
}

void LeastSquares::fit_chunk(std::span<const int64_t> rows, float* into) {
  const std::vector<double> right = right_sides(rows);
  const std::vector<size_t> begins = groups(rows);
  const auto fit_one = [&](int64_t group) {
    const size_t first = begins[static_cast<size_t>(group)];
    fit_rows(rows.subspan(first, begins[static_cast<size_t>(group) + 1] - first),
             right.data() + static_cast<int64_t>(first) * columns_, into);
  };
  int64_t largest = 0;
  for (const int64_t row : rows) {
    largest = std::max(largest, static_cast<int64_t>(positions_.row(row).size()));
  }
  for_each_within(columns_ * columns_ / 2, static_cast<int64_t>(begins.size()) - 1,
                  largest * largest, fit_one);
}

bool LeastSquares::factor(std::span<const uint32_t> columns, double damping,
                          std::vector<double>& lower) const {
  const auto size = static_cast<int64_t>(columns.size());
  lower.resize(columns.size() * columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    const double* row = gram_.data() + static_cast<int64_t>(columns[i]) * columns_;
    double* to = lower.data() + i * columns.size();
    for (size_t j = 0; j <= i; ++j) to[j] = row[columns[j]];
    to[i] += damping * mean_;
  }
  return cholesky(size, lower.data(), kSmallestPivot) == size;
}

// Rows of one support. `right` holds their right-hand sides [rows, columns].
void LeastSquares::fit_rows(std::span<const int64_t> rows, const double* right, float* into) {
  for (const int64_t row : rows) {  // those of dead inputs stay
    for (const uint32_t c : positions_.row(row)) {
      into[row * columns_ + c] = weight_.data()[row * columns_ + c];
    }
  }
  const std::vector<uint32_t> columns = live_columns(rows.front());
  std::vector<double> lower, x(columns.size());
  double damping = damping_;
  while (!factor(columns, damping, lower)) {
    damping = raised(damping);
    if (is_hopeless(damping)) {
      throw DataError(
          "least squares have no solution with any damping; give other examples (`calibration`), "
          "or "
          "leave `least_squares` out");
    }
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    damping_of_row_[static_cast<size_t>(rows[r])] = damping;
    // What damping was raised by pulls to the weights that are there, not to zero.
    const double pull = (damping - damping_) * mean_;
    for (size_t i = 0; i < columns.size(); ++i) {
      x[i] = right[static_cast<int64_t>(r) * columns_ + columns[i]] +
             pull * weight_.data()[rows[r] * columns_ + columns[i]];
    }
    solve_factored(static_cast<int64_t>(x.size()), lower.data(), x.data());
    for (size_t i = 0; i < columns.size(); ++i) {
      into[rows[r] * columns_ + columns[i]] = static_cast<float>(x[i]);
    }
  }
}

}  // namespace

PrunedWeight fit_least_squares(const std::string& layer, const Tensor& weight,
                               const InputGram& gram, const MaskSet& mask, double damping) {
  require_layer(layer, weight, gram, mask.shape());
  if (!(damping >= 0.0)) throw ConfigError(of_layer(layer) + "damping must be at least 0");
  PrunedWeight fitted{.weight = weight, .mask = mask};
  if (mask.count() > 0) {
    try {
      LeastSquares squares(weight, gram, mask, damping);
      fitted.weight = squares.fit();
      if (const int64_t rows = squares.damped_rows(); rows > 0) {
        fitted.messages.push_back(
            fmt::format("{}least squares: the inputs of {} of {} depend on each other, and damping "
                        "is raised from {} to {} at most; more calibration examples may help",
                        of_layer(layer), rows, plural(matrix_rows(weight.shape()), "row"),
                        shortest(damping), shortest(squares.most_damping())));
      }
    } catch (const DataError& error) {
      throw DataError(of_layer(layer) + error.what());
    }
  } else {
    fitted.weight = Tensor::zeros(weight.shape());
  }
  fitted.relative_error = relative_output_error(weight, fitted.weight, gram);
  return fitted;
}

}  // namespace lacuna
