#include "lacuna/sparsity/one_shot/sparse_gpt.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/dense/cholesky.hpp"
#include "lacuna/framework/kernels/dense/gemm.hpp"
#include "lacuna/sparsity/one_shot/damped_factor.hpp"
#include "lacuna/sparsity/one_shot/weight_grid.hpp"

namespace lacuna {
namespace {

class SparseGptSweep {
 public:
  explicit SparseGptSweep(const OneShotProblem& problem);
  PrunedWeight run();

 private:
  bool is_nm() const { return problem_.selector.pattern().is_nm(); }
  void order_columns();
  void factor();
  void share_out();
  void prune_block(int64_t begin, int64_t width, size_t index);
  MaskSet choose(int64_t begin, int64_t width, size_t block) const;
  void sweep(int64_t begin, int64_t first, int64_t width, int64_t end, const MaskSet& kept);
  void update_rest(int64_t begin, int64_t width);
  double at(int64_t i, int64_t j) const {
    return upper_[static_cast<size_t>(i * problem_.columns + j)];
  }

  // A weight that stays, on the grid where there is one.
  float kept_value(float w, int64_t row) const {
    const std::vector<float>& scales = problem_.options.grid_scales;
    return scales.empty() ? w : on_grid(w, scales[static_cast<size_t>(row)]);
  }

  const OneShotProblem& problem_;
  int64_t rows_, columns_;
  std::vector<int64_t> order_;   // of the columns, as they are pruned
  std::vector<double> upper_;    // U, in that order
  std::vector<float> weights_;   // [columns in that order][rows], up to date
  std::vector<float> errors_;    // [columns of a block][rows], negative
  int64_t width_;                // of a block
  std::vector<int64_t> shares_;  // positions that each block keeps
  std::vector<int64_t> row_shares_, row_present_, row_seen_, row_given_;
  BitMask kept_;
  std::vector<std::string> messages_;
};

SparseGptSweep::SparseGptSweep(const OneShotProblem& problem)
    : problem_(problem),
      rows_(problem.rows),
      columns_(problem.columns),
      kept_(BitMask::zeros(problem.weight.numel())) {
  const int64_t unit = problem.selector.pattern().divisors()[1];
  // No block is wider than the matrix: what is rounded up stays a number.
  width_ = (std::min(problem.options.block, problem.columns) + unit - 1) / unit * unit;
  problem.present.bits();  // in which positions are looked up one by one
  order_columns();
}

void SparseGptSweep::order_columns() {
  order_.resize(static_cast<size_t>(columns_));
  const int64_t taps = matrix_taps(problem_.weight.shape());
  const bool by_taps = problem_.selector.pattern().is_structured();
  for (int64_t i = 0; i < columns_; ++i) {
    const int64_t channels = columns_ / taps;
    order_[static_cast<size_t>(i)] = by_taps ? i % channels * taps + i / channels : i;
  }
  const float* weight = problem_.weight.data();
  weights_.resize(static_cast<size_t>(rows_ * columns_));
  parallel_for(columns_, 16, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t column = order_[static_cast<size_t>(i)];
      const bool is_dead = problem_.squares[static_cast<size_t>(column)] == 0.0;
      for (int64_t r = 0; r < rows_; ++r) {
        weights_[static_cast<size_t>(i * rows_ + r)] = is_dead ? 0 : weight[r * columns_ + column];
      }
    }
  });
}

// The matrix backwards, so that its lower factor is the upper one of H = U'·U'ᵀ backwards, and the
// inverse of that is U.
void SparseGptSweep::factor() {
  const std::span<const double> gram = problem_.gram.matrix();
  double mean = std::accumulate(problem_.squares.begin(), problem_.squares.end(), 0.0) /
                static_cast<double>(columns_);
  if (mean == 0.0) mean = 1.0;
  const bool is_automatic = problem_.options.damping == OneShotOptions::kAutomaticDamping;
  upper_.resize(gram.size());
  const auto attempt = [&](double damping) {
    parallel_for(columns_, 16, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t row = order_[static_cast<size_t>(columns_ - 1 - i)];
        for (int64_t j = 0; j <= i; ++j) {
          const int64_t column = order_[static_cast<size_t>(columns_ - 1 - j)];
          upper_[static_cast<size_t>(i * columns_ + j)] =
              gram[static_cast<size_t>(row * columns_ + column)];
        }
        std::fill_n(upper_.begin() + i * columns_ + i + 1, columns_ - i - 1, 0.0);
        double& diagonal = upper_[static_cast<size_t>(i * columns_ + i)];
        if (diagonal == 0.0) diagonal = mean;  // a dead input stands for itself
        diagonal += damping * (is_automatic ? diagonal : mean);
      }
    });
    return cholesky(columns_, upper_.data(), kSmallestPivot) == columns_;
  };
  const double damping = is_automatic ? automatic_damping(problem_.gram) : problem_.options.damping;
  factor_damped(of_layer(problem_.layer), damping, attempt, messages_);
  invert_lower(columns_, upper_.data());
  std::ranges::reverse(upper_);
}

// What the blocks keep: of each row its part, of an N:M pattern all that fits, else a share.
void SparseGptSweep::share_out() {
  const PatternShape& pattern = problem_.selector.pattern();
  const auto blocks = static_cast<size_t>((columns_ + width_ - 1) / width_);
  const std::vector<int64_t>& given = problem_.options.keep_of_parts;
  if (is_nm()) {
    const MaskSet fullest = keep_largest(problem_, problem_.weight.storage(), problem_.keep, {});
    if (keep_largest(problem_, problem_.weight.storage(), problem_.present.count(), {}).count() >
        fullest.count()) {
      throw ConfigError(
          fmt::format("{}sparsegpt fills {} greedily, and cannot keep {} positions: prune by "
                      "magnitude, wanda or admm",
                      of_layer(problem_.layer), pattern.description(), problem_.keep));
    }
    return;
  }
  if (problem_.by_rows()) {
    row_shares_ = shares_of_rows(problem_, problem_.keep);
    row_present_ = row_counts(problem_.present);
    row_seen_.assign(row_shares_.size(), 0);
    row_given_ = row_seen_;
    return;
  }
  std::vector<int64_t> present(blocks, 0);
  std::vector<int64_t> place(order_.size());
  for (size_t i = 0; i < order_.size(); ++i) {
    place[static_cast<size_t>(order_[i])] = static_cast<int64_t>(i);
  }
  problem_.present.positions().for_each([&](int64_t i) {
    ++present[static_cast<size_t>(place[static_cast<size_t>(i % columns_)] / width_)];
  });
  if (!given.empty()) {
    if (!std::ranges::equal(given, present,
                            [](int64_t a, int64_t b) { return a >= 0 && a <= b; })) {
      throw ConfigError(of_layer(problem_.layer) +
                        "keep_of_parts needs one count for each block of columns, from 0 to its "
                        "positions");
    }
    shares_ = given;
    return;
  }
  const int64_t unit = pattern.unit_size();
  for (int64_t& count : present) count /= unit;
  shares_ = proportional_shares(present, problem_.keep / unit);
  for (int64_t& count : shares_) count *= unit;
}

// Of columns begin … of the block the positions that stay, by their scores.
MaskSet SparseGptSweep::choose(int64_t begin, int64_t width, size_t block) const {
  const Shape shape{rows_, width};
  const MaskSet& present = problem_.present;
  std::vector<float> scores;
  scores.reserve(static_cast<size_t>(shape.numel()));
  BitMask there = BitMask::ones(shape.numel());
  const bool all = present.count() == present.size();
  for (int64_t r = 0; r < rows_; ++r) {
    for (int64_t j = 0; j < width; ++j) {
      const int64_t column = order_[static_cast<size_t>(begin + j)];
      if (!all && !present.test(r * columns_ + column)) {
        there.reset(r * width + j);
        if (!problem_.by_rows()) continue;
      }
      const double w = weights_[static_cast<size_t>((begin + j) * rows_ + r)];
      const double scaled = w / at(begin + j, begin + j);
      scores.push_back(static_cast<float>(scaled * scaled));
    }
  }
  const MaskSet candidates(shape, std::move(there));
  if (problem_.by_rows()) {
    std::vector<int64_t> keep(row_shares_.size());
    const std::vector<int64_t> here = row_counts(candidates);
    for (size_t r = 0; r < keep.size(); ++r) {
      const int64_t until =
          row_present_[r] == 0 ? 0 : row_shares_[r] * (row_seen_[r] + here[r]) / row_present_[r];
      keep[r] = until - row_given_[r];
    }
    return keep_of_rows(candidates, scores, keep);
  }
  const int64_t count = is_nm() ? candidates.count() : shares_[block];
  return MaskSelector({}, problem_.selector.pattern(), shape).keep(candidates, scores, count);
}

// Columns first … first + width become what is kept of them; those up to `end` make up for it.
void SparseGptSweep::sweep(int64_t begin, int64_t first, int64_t width, int64_t end,
                           const MaskSet& kept) {
  const BitMask& bits = kept.bits();
  parallel_for(rows_, 64, [&](int64_t from, int64_t to) {
    for (int64_t j = first; j < first + width; ++j) {
      float* w = weights_.data() + j * rows_;
      float* e = errors_.data() + (j - begin) * rows_;
      const double pivot = at(j, j);
      for (int64_t r = from; r < to; ++r) {
        const float becomes = bits.test(r * width + j - first) ? kept_value(w[r], r) : 0.0f;
        e[r] = static_cast<float>((static_cast<double>(becomes) - w[r]) / pivot);
        w[r] = becomes;
      }
      for (int64_t l = j + 1; l < end; ++l) {
        float* other = weights_.data() + l * rows_;
        const auto factor = static_cast<float>(at(j, l));
        for (int64_t r = from; r < to; ++r) other[r] += e[r] * factor;
      }
    }
  });
  bits.for_each([&](int64_t i) {
    kept_.set(i / width * columns_ + order_[static_cast<size_t>(first + i % width)]);
  });
}

void SparseGptSweep::prune_block(int64_t begin, int64_t width, size_t index) {
  const int64_t step = is_nm() ? problem_.selector.pattern().m() : width;
  errors_.resize(static_cast<size_t>(width * rows_));
  for (int64_t j = begin; j < begin + width; j += step) {
    sweep(begin, j, step, begin + width, choose(j, step, index));
  }
  if (!problem_.by_rows()) return;
  for (int64_t j = begin; j < begin + width; ++j) {
    for (int64_t r = 0; r < rows_; ++r) {
      const int64_t position = r * columns_ + order_[static_cast<size_t>(j)];
      row_seen_[static_cast<size_t>(r)] += problem_.present.test(position) ? 1 : 0;
      row_given_[static_cast<size_t>(r)] += kept_.test(position) ? 1 : 0;
    }
  }
}

void SparseGptSweep::update_rest(int64_t begin, int64_t width) {
  const int64_t next = begin + width, rest = columns_ - next;
  if (rest == 0) return;
  std::vector<float> panel(static_cast<size_t>(width * rest));
  for (int64_t j = 0; j < width; ++j) {
    for (int64_t l = 0; l < rest; ++l) {
      panel[static_cast<size_t>(j * rest + l)] = static_cast<float>(at(begin + j, next + l));
    }
  }
  gemm({.m = rest,
        .n = rows_,
        .k = width,
        .transpose_a = Transpose::Yes,
        .a = panel.data(),
        .b = errors_.data(),
        .c = weights_.data() + next * rows_,
        .beta = 1.0f});
}

PrunedWeight SparseGptSweep::run() {
  share_out();
  factor();
  size_t index = 0;
  for (int64_t begin = 0; begin < columns_; begin += width_, ++index) {
    const int64_t width = std::min(width_, columns_ - begin);
    prune_block(begin, width, index);
    update_rest(begin, width);
  }
  PrunedWeight pruned;
  pruned.weight = Tensor::empty(problem_.weight.shape());
  float* into = pruned.weight.mutable_data();
  for (int64_t i = 0; i < columns_; ++i) {
    const int64_t column = order_[static_cast<size_t>(i)];
    for (int64_t r = 0; r < rows_; ++r) {
      into[r * columns_ + column] = weights_[static_cast<size_t>(i * rows_ + r)];
    }
  }
  pruned.mask = MaskSet(problem_.weight.shape(), std::move(kept_));
  pruned.messages = std::move(messages_);
  return pruned;
}

}  // namespace

PrunedWeight prune_by_sparse_gpt(const OneShotProblem& problem) {
  if (problem.selector.groups().count() > 1) {
    throw ConfigError(of_layer(problem.layer) +
                      "sparsegpt does not support score groups: prune by magnitude, wanda or admm");
  }
  return SparseGptSweep(problem).run();
}

}  // namespace lacuna
