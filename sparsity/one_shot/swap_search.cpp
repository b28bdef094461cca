#include "lacuna/sparsity/one_shot/swap_search.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/dense/cholesky.hpp"
#include "lacuna/framework/kernels/dense/double_product.hpp"
#include "lacuna/sparsity/one_shot/damped_factor.hpp"
#include "lacuna/sparsity/one_shot/swap_tableau.hpp"

namespace lacuna {
namespace {

constexpr int64_t kSwapRows = 64;    // whose right-hand sides are there at a time
constexpr int64_t kFewest = 8;       // positions that may leave or come, where a row has them
constexpr int64_t kMost = 192;       // of large rows: a swap's cost is by their square
constexpr double kLeastGain = 1e-9;  // of a row's outputs
constexpr int64_t kSwapPanel = 64;   // rows of a triangle that are solved without a product

int64_t candidates(int64_t kept) { return std::min({kept, std::max(kept / 4, kFewest), kMost}); }

/// What all rows share.
struct Layer {
  Layer(const OneShotProblem& of, const PrunedWeight& to_improve);

  double gram(int64_t i, int64_t j) const {
    return matrix[static_cast<size_t>(i * columns + j)] + (i == j ? added : 0.0);
  }
  double square(int64_t column) const { return problem.squares[static_cast<size_t>(column)]; }
  int64_t cell(int64_t column) const { return cells[static_cast<size_t>(column)]; }

  const OneShotProblem& problem;
  const PrunedWeight& pruned;
  int64_t columns;
  std::span<const double> matrix;
  double added = 0.0;          // to the diagonal, by the damping of the least squares
  std::vector<int64_t> cells;  // of columns: what swaps with what
};

Layer::Layer(const OneShotProblem& of, const PrunedWeight& to_improve)
    : problem(of), pruned(to_improve), columns(of.columns), matrix(of.gram.matrix()) {
  for (const double square : of.squares) added += square / static_cast<double>(columns);
  added *= of.options.least_squares_damping;
  const PatternShape& pattern = of.selector.pattern();
  const int64_t taps = matrix_taps(of.weight.shape());
  for (int64_t i = 0; i < columns; ++i) {
    cells.push_back(pattern.is_nm() ? i / taps / pattern.m() * taps + i % taps
                                    : of.selector.groups().of(0, i));
  }
}

// L⁻¹ · rows [size, width], in place.
void solve_lower(int64_t size, const double* lower, int64_t width, double* rows) {
  for (int64_t first = 0; first < size; first += kSwapPanel) {
    const int64_t end = std::min(first + kSwapPanel, size);
    if (first > 0) {
      add_product({.m = end - first,
                   .n = width,
                   .k = first,
                   .alpha = -1.0,
                   .a = lower + first * size,
                   .b = rows,
                   .c = rows + first * width,
                   .lda = size,
                   .ldb = width,
                   .ldc = width});
    }
    for (int64_t i = first; i < end; ++i) {
      double* row = rows + i * width;
      for (int64_t j = first; j < i; ++j) {
        const double factor = lower[i * size + j];
        for (int64_t c = 0; c < width; ++c) row[c] -= factor * rows[j * width + c];
      }
      const double pivot = lower[i * size + i];
      for (int64_t c = 0; c < width; ++c) row[c] /= pivot;
    }
  }
}

/// One row. `right` is H w of its weights w.
class RowSearch {
 public:
  RowSearch(const Layer& layer, int64_t row, std::span<const double> right)
      : layer_(layer), row_(row), right_(right) {}
  /// The columns that it keeps, dead ones aside.
  std::vector<int64_t> run();

 private:
  void list_kept();
  bool factor();
  void choose_others();
  void solve();
  std::vector<double> table() const;
  int64_t kept(int64_t i) const { return kept_[static_cast<size_t>(i)]; }
  int64_t other(int64_t i) const { return others_[static_cast<size_t>(i)]; }
  double right(int64_t column) const { return right_[static_cast<size_t>(column)]; }

  const Layer& layer_;
  int64_t row_;
  std::span<const double> right_;
  std::vector<int64_t> kept_;    // columns, those that may leave last
  std::vector<int64_t> others_;  // columns that may come
  int64_t size_ = 0, leave_ = 0, stay_ = 0, come_ = 0;
  std::vector<double> lower_;   // L, the factor of the kept columns' Gram matrix
  std::vector<double> fitted_;  // their least squares
  std::vector<double> solved_;  // L⁻¹ · [Gram matrix of kept and other columns, right-hand side]
};

void RowSearch::list_kept() {
  const float* weight = layer_.pruned.weight.data() + row_ * layer_.columns;
  std::vector<std::pair<double, int64_t>> scored;
  for (const uint32_t column : layer_.pruned.mask.positions().row(row_)) {
    const double w = weight[column], square = layer_.square(column);
    if (square > 0.0) scored.emplace_back(-w * w * square, column);
  }
  std::ranges::sort(scored);
  for (const auto& [score, column] : scored) kept_.push_back(column);
  size_ = static_cast<int64_t>(kept_.size());
  leave_ = candidates(size_);
  stay_ = size_ - leave_;
}

bool RowSearch::factor() {
  lower_.resize(static_cast<size_t>(size_ * size_));
  for (int64_t i = 0; i < size_; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      lower_[static_cast<size_t>(i * size_ + j)] = layer_.gram(kept(i), kept(j));
    }
    fitted_.push_back(right(kept(i)));
  }
  if (cholesky(size_, lower_.data(), kSmallestPivot) < size_) return false;
  solve_factored(size_, lower_.data(), fitted_.data());
  return true;
}

// Those with the largest gradients, in cells that some may leave.
void RowSearch::choose_others() {
  std::vector<char> is_open(static_cast<size_t>(layer_.cells.back()) + 1, 0);
  for (int64_t i = stay_; i < size_; ++i) is_open[static_cast<size_t>(layer_.cell(kept(i)))] = 1;
  const OneShotProblem& problem = layer_.problem;
  std::vector<std::pair<double, int64_t>> scored;
  for (int64_t column = 0; column < layer_.columns; ++column) {
    const int64_t position = row_ * layer_.columns + column;
    if (is_open[static_cast<size_t>(layer_.cell(column))] == 0 || layer_.square(column) == 0.0 ||
        layer_.pruned.mask.test(position) || !problem.present.test(position)) {
      continue;
    }
    double gradient = right(column);
    const double* line = layer_.matrix.data() + column * layer_.columns;
    for (size_t i = 0; i < kept_.size(); ++i) gradient -= line[kept_[i]] * fitted_[i];
    scored.emplace_back(-gradient * gradient / layer_.square(column), column);
  }
  come_ = std::min(static_cast<int64_t>(scored.size()), leave_);
  std::ranges::nth_element(scored, scored.begin() + come_);
  for (int64_t i = 0; i < come_; ++i) others_.push_back(scored[static_cast<size_t>(i)].second);
  std::ranges::sort(others_);
}

void RowSearch::solve() {
  const int64_t width = come_ + 1;
  solved_.resize(static_cast<size_t>(size_ * width));
  for (int64_t i = 0; i < size_; ++i) {
    double* to = solved_.data() + i * width;
    for (int64_t j = 0; j < come_; ++j) to[j] = layer_.gram(kept(i), other(j));
    to[come_] = right(kept(i));
  }
  solve_lower(size_, lower_.data(), width, solved_.data());
}

// Of the columns that may leave and those that may come, when those that stay are taken out.
std::vector<double> RowSearch::table() const {
  const int64_t width = come_ + 1, line = leave_ + width;
  std::vector<double> table(static_cast<size_t>(line * line));
  double* corner = table.data() + leave_ * line + leave_;  // of those that may come
  for (int64_t i = 0; i < come_; ++i) {
    for (int64_t j = 0; j < come_; ++j) corner[i * line + j] = layer_.gram(other(i), other(j));
    corner[i * line + come_] = corner[come_ * line + i] = right(other(i));
  }
  add_product({.m = width,
               .n = width,
               .k = stay_,
               .transpose_a = Transpose::Yes,
               .alpha = -1.0,
               .a = solved_.data(),
               .b = solved_.data(),
               .c = corner,
               .lda = width,
               .ldb = width,
               .ldc = line});
  // Of those that may leave: their part of L times its transpose, and times theirs of `solved`.
  const double* part = lower_.data() + stay_ * size_ + stay_;
  for (int64_t i = 0; i < leave_; ++i) {
    double* to = table.data() + i * line;
    for (int64_t l = 0; l <= i; ++l) {
      const double factor = part[i * size_ + l];
      for (int64_t j = l; j < leave_; ++j) to[j] += factor * part[j * size_ + l];
      const double* from = solved_.data() + (stay_ + l) * width;
      for (int64_t j = 0; j < width; ++j) to[leave_ + j] += factor * from[j];
    }
    for (int64_t j = leave_; j < line; ++j) table[static_cast<size_t>(j * line + i)] = to[j];
  }
  return table;
}

std::vector<int64_t> RowSearch::run() {
  list_kept();
  if (size_ == 0 || 3 * size_ > 2 * layer_.columns || !factor()) return kept_;
  choose_others();
  if (come_ == 0) return kept_;
  solve();
  double outputs = 0.0;
  const float* weight = layer_.problem.weight.data() + row_ * layer_.columns;
  for (int64_t c = 0; c < layer_.columns; ++c) outputs += weight[c] * right(c);
  std::vector<int64_t> columns(kept_.begin() + stay_, kept_.end()), cells;
  columns.insert(columns.end(), others_.begin(), others_.end());
  for (const int64_t column : columns) cells.push_back(layer_.cell(column));
  SwapTableau tableau(table(), leave_, std::move(cells));
  tableau.swap_while_better(kLeastGain * outputs);
  kept_.resize(static_cast<size_t>(stay_));
  for (size_t i = 0; i < columns.size(); ++i) {
    if (tableau.is_used(static_cast<int64_t>(i))) kept_.push_back(columns[i]);
  }
  return kept_;
}

// Rows first … first + count of the mask, in place.
void search_rows(const Layer& layer, int64_t first, int64_t count, BitMask& mask) {
  const int64_t columns = layer.columns;
  std::vector<double> weights(static_cast<size_t>(count * columns)), right(weights.size(), 0.0);
  std::copy_n(layer.problem.weight.data() + first * columns, weights.size(), weights.data());
  add_product({.m = count,
               .n = columns,
               .k = columns,
               .a = weights.data(),
               .b = layer.matrix.data(),
               .c = right.data(),
               .lda = columns,
               .ldb = columns,
               .ldc = columns});
  const Positions& positions = layer.pruned.mask.positions();
  int64_t most = 0;
  for (int64_t r = first; r < first + count; ++r) {
    most = std::max(most, static_cast<int64_t>(positions.row(r).size()));
  }
  most = std::min(most, 2 * columns / 3);
  const int64_t others = candidates(most) + 1;
  std::vector<std::vector<int64_t>> kept(static_cast<size_t>(count));
  const auto search = [&](int64_t r) {
    const auto begin = static_cast<size_t>(r * columns);
    kept[static_cast<size_t>(r)] =
        RowSearch(layer, first + r, std::span(right).subspan(begin, static_cast<size_t>(columns)))
            .run();
  };
  for_each_within(columns * columns, count, most * (most + others) + 4 * others * others, search);
  for (int64_t r = 0; r < count; ++r) {
    const int64_t begin = (first + r) * columns;
    for (const uint32_t column : positions.row(first + r)) {
      if (layer.square(column) > 0.0) mask.reset(begin + column);
    }
    for (const int64_t column : kept[static_cast<size_t>(r)]) mask.set(begin + column);
  }
}

}  // namespace

MaskSet swap_for_least_squares(const OneShotProblem& problem, const PrunedWeight& pruned) {
  const PatternShape& pattern = problem.selector.pattern();
  const auto live = std::ranges::count_if(problem.squares, [](double x) { return x > 0.0; });
  if (live == 0 || problem.gram.rows() < live || pattern.unit_size() > 1 ||
      pattern.cell_rows() > 1) {
    return pruned.mask;
  }
  const Layer layer(problem, pruned);
  BitMask mask = pruned.mask.bits();
  pruned.mask.positions();  // both forms, and of what is present bits, before threads ask for them
  problem.present.bits();
  for (int64_t first = 0; first < problem.rows; first += kSwapRows) {
    search_rows(layer, first, std::min(kSwapRows, problem.rows - first), mask);
  }
  return MaskSet(pruned.mask.shape(), std::move(mask));
}

}  // namespace lacuna
