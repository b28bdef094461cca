#include "lacuna/sparsity/one_shot/admm.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/dense/cholesky.h"
#include "lacuna/framework/kernels/dense/gemm.h"
#include "lacuna/sparsity/one_shot/damped_factor.hpp"

namespace lacuna {
namespace {

class AdmmRounds {
 public:
  explicit AdmmRounds(const OneShotProblem& problem);
  PrunedWeight run();

 private:
  void scale();
  void factor();
  int64_t on_the_way(int64_t present, int64_t keep, double progress) const;
  MaskSet choose(double progress) const;
  MaskSet choose_on_the_way(int64_t count) const;
  void round(const MaskSet& mask);
  void become_floats();
  void add_rows(const Array<float>& rows, float beta, Array<float>& into) const;

  const OneShotProblem& problem_;
  int64_t rows_, columns_;
  std::vector<double> norms_;  // of the inputs
  Array<float> weights_;       // W₀ in their scale, then A W₀ ± ρX
  Array<float> target_;        // A W₀
  Array<std::byte> square_;    // (A + ρI)⁻¹ as floats, with room for doubles
  Array<float> sum_;           // X
  std::vector<std::string> messages_;
};

AdmmRounds::AdmmRounds(const OneShotProblem& problem)
    : problem_(problem),
      rows_(problem.rows),
      columns_(problem.columns),
      weights_(static_cast<size_t>(problem.weight.numel())),
      target_(weights_.size()),
      square_(static_cast<size_t>(columns_ * columns_) * sizeof(double)),
      sum_(weights_.size()) {
  for (const double square : problem.squares) norms_.push_back(std::sqrt(square) + 1e-8);
}

// rows · the square matrix + beta · into.
void AdmmRounds::add_rows(const Array<float>& rows, float beta, Array<float>& into) const {
  gemm({.m = rows_,
        .n = columns_,
        .k = columns_,
        .a = rows.data(),
        .b = reinterpret_cast<const float*>(square_.data()),
        .c = into.data(),
        .beta = beta});
}

void AdmmRounds::scale() {
  const float* weight = problem_.weight.data();
  for (size_t i = 0; i < weights_.size(); ++i) {
    weights_[i] = static_cast<float>(weight[i] * norms_[i % norms_.size()]);
  }
  sum_ = weights_;
}

// A, as floats, gives A W₀; then A + ρI, as doubles in the same place, becomes its inverse.
void AdmmRounds::factor() {
  const std::span<const double> gram = problem_.gram.matrix();
  double mean = 0.0;  // of A's diagonal: 1 but for dead inputs
  for (size_t i = 0; i < norms_.size(); ++i) {
    mean += problem_.squares[i] / (norms_[i] * norms_[i]) / static_cast<double>(columns_);
  }
  if (mean == 0.0) mean = 1.0;
  const auto write = [&](auto* into, double on_diagonal, bool is_lower) {
    parallel_for(columns_, 16, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const double norm = norms_[static_cast<size_t>(i)];
        for (int64_t j = 0; j < columns_; ++j) {
          double value =
              gram[static_cast<size_t>(i * columns_ + j)] / (norm * norms_[static_cast<size_t>(j)]);
          if (j == i) value += on_diagonal;
          if (j > i && is_lower) value = 0.0;
          into[i * columns_ + j] = static_cast<std::remove_pointer_t<decltype(into)> >(value);
        }
      }
    });
  };
  auto* doubles = reinterpret_cast<double*>(square_.data());
  const auto attempt = [&](double damping) {
    write(reinterpret_cast<float*>(square_.data()), damping * mean, false);
    add_rows(weights_, 0.0f, target_);
    write(doubles, damping * mean + problem_.options.rho, true);
    return cholesky(columns_, doubles, kSmallestPivot) == columns_;
  };
  factor_damped(of_layer(problem_.layer), problem_.options.damping, attempt, messages_);
  invert_lower(columns_, doubles);
  square_lower(columns_, doubles);
  become_floats();
}

// The lower triangle of doubles as a symmetric matrix of floats, from the same place on: a float
// never lies behind the double that it comes from.
void AdmmRounds::become_floats() {
  for (int64_t i = 0; i < columns_ * columns_; ++i) {
    double value;
    std::memcpy(&value, square_.data() + i * int64_t{sizeof(double)}, sizeof(double));
    const auto rounded = static_cast<float>(value);
    std::memcpy(square_.data() + i * int64_t{sizeof(float)}, &rounded, sizeof(float));
  }
  auto* floats = reinterpret_cast<float*>(square_.data());
  parallel_for(columns_, 64, [&](int64_t first, int64_t last) {
    for (int64_t j = 0; j < last; ++j) {
      for (int64_t i = std::max(first, j + 1); i < last; ++i) {
        floats[j * columns_ + i] = floats[i * columns_ + j];
      }
    }
  });
}

// What of `present` is left when a part of the way to `keep` is gone.
int64_t AdmmRounds::on_the_way(int64_t present, int64_t keep, double progress) const {
  const auto all = static_cast<double>(present);
  const std::optional<double> sparsity = problem_.options.sparsity;
  const double pruned =
      sparsity ? all * (*sparsity * progress) : static_cast<double>(present - keep) * progress;
  return std::max(present - static_cast<int64_t>(pruned), keep);
}

MaskSet AdmmRounds::choose(double progress) const {
  const int64_t present = problem_.present.count();
  const std::span<const float> scores(sum_);
  if (progress >= 1.0) {
    return keep_largest(problem_, scores, problem_.keep, shares_of_rows(problem_, problem_.keep));
  }
  if (problem_.by_rows()) {
    std::vector<int64_t> keep = shares_of_rows(problem_, problem_.keep);
    const std::vector<int64_t> all = row_counts(problem_.present);
    for (size_t r = 0; r < keep.size(); ++r) keep[r] = on_the_way(all[r], keep[r], progress);
    return keep_of_rows(problem_.present, scores, keep);
  }
  const int64_t unit = problem_.selector.pattern().unit_size() * problem_.selector.groups().count();
  const int64_t count = on_the_way(present / unit, problem_.keep / unit, progress) * unit;
  if (problem_.selector.pattern().is_nm()) return choose_on_the_way(count);
  return keep_largest(problem_, scores, count, {});
}

// Cells keep what the pattern lets them, and what else may stay competes in the whole layer.
MaskSet AdmmRounds::choose_on_the_way(int64_t count) const {
  const MaskSet& present = problem_.present;
  MaskSet fullest = keep_largest(problem_, sum_, present.count(), {});
  if (count <= fullest.count()) return keep_largest(problem_, sum_, count, {});
  const BitMask& safe = fullest.bits();
  std::vector<float> scores(static_cast<size_t>(present.count()));
  size_t place = 0;
  present.positions().for_each([&](int64_t i) {
    scores[place++] = safe.test(i) ? std::numeric_limits<float>::infinity()
                                   : std::abs(sum_[static_cast<size_t>(i)]);
  });
  return MaskSelector({}, {}, present.shape()).keep(present, scores, count);
}

// X from a mask and the X before it.
void AdmmRounds::round(const MaskSet& mask) {
  const auto rho = static_cast<float>(problem_.options.rho);
  const BitMask& kept = mask.bits();
  constexpr int64_t kGrain = int64_t{1} << 14;
  // Off the mask X is what the penalty has summed up, to which W is added.
  parallel_for(static_cast<int64_t>(sum_.size()), kGrain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const auto at = static_cast<size_t>(i);
      const bool stays = kept.test(i);
      weights_[at] = target_[at] + (stays ? rho : -rho) * sum_[at];
      if (stays) sum_[at] = 0.0f;
    }
  });
  add_rows(weights_, 1.0f, sum_);
}

PrunedWeight AdmmRounds::run() {
  scale();
  factor();
  const OneShotOptions& options = problem_.options;
  const bool goes_on_choosing = options.least_squares;
  MaskSet mask;
  for (int t = 1; t <= options.rounds; ++t) {
    // The last round's mask is the one that is asked for, however few there are.
    const bool is_there = t >= options.gradual_rounds || t == options.rounds;
    const double left = is_there ? 0.0 : 1.0 - static_cast<double>(t) / options.gradual_rounds;
    if (t <= std::max(options.gradual_rounds, 1) || goes_on_choosing) {
      mask = choose(1.0 - left * left * left);
    }
    round(mask);
  }
  if (goes_on_choosing) mask = choose(1.0);
  for (size_t i = 0; i < sum_.size(); ++i) {
    sum_[i] = static_cast<float>(sum_[i] / norms_[i % norms_.size()]);
  }
  PrunedWeight pruned{.weight = masked(mask, sum_), .mask = std::move(mask)};
  pruned.messages = std::move(messages_);
  return pruned;
}

}  // namespace

PrunedWeight prune_by_admm(const OneShotProblem& problem) { return AdmmRounds(problem).run(); }

}  // namespace lacuna
