#include "lacuna/sparsity/one_shot/admm.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "lacuna/framework/core/array.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/dense/cholesky.hpp"
#include "lacuna/framework/kernels/dense/gemm.hpp"
#include "lacuna/sparsity/one_shot/damped_factor.hpp"
#include "lacuna/sparsity/one_shot/weight_grid.hpp"

namespace lacuna {
namespace {

// The lower triangle of a matrix of doubles as a symmetric matrix of floats. The doubles are freed
// on the way, when the triangle's floats are there.
std::vector<float> symmetric_floats(int64_t size, std::vector<double> lower) {
  std::vector<float> triangle;
  triangle.reserve(static_cast<size_t>(size * (size + 1) / 2));
  for (int64_t i = 0; i < size; ++i) {
    const double* row = lower.data() + i * size;
    for (int64_t j = 0; j <= i; ++j) triangle.push_back(static_cast<float>(row[j]));
  }
  lower = std::vector<double>();  // {} would keep its memory
  std::vector<float> whole(static_cast<size_t>(size * size));
  parallel_for(size, 16, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const float* row = triangle.data() + i * (i + 1) / 2;
      for (int64_t j = 0; j <= i; ++j) {
        whole[static_cast<size_t>(i * size + j)] = row[j];
        whole[static_cast<size_t>(j * size + i)] = row[j];
      }
    }
  });
  return whole;
}

class AdmmRounds {
 public:
  explicit AdmmRounds(const OneShotProblem& problem);
  PrunedWeight run();

 private:
  void scale();
  void factor();
  int64_t on_the_way(int64_t present, int64_t keep, double progress) const;
  MaskSet choose(double progress);
  MaskSet choose_on_the_way(int64_t count);
  void round(const MaskSet& mask, bool is_last_mask);
  std::vector<float> scales_of(const MaskSet& mask) const;
  void add_rows(const Array<float>& rows, const float* square, float beta,
                Array<float>& into) const;

  const OneShotProblem& problem_;
  int64_t rows_, columns_;
  std::vector<double> norms_;  // of the inputs
  Array<float> weights_;  // W₀ in their scale, then A W₀ ± ρX; between rounds free for scores
  Array<float> target_;   // A W₀
  std::vector<float> inverse_;  // (A + ρI)⁻¹
  Array<float> sum_;            // X
  std::vector<std::string> messages_;
};

AdmmRounds::AdmmRounds(const OneShotProblem& problem)
    : problem_(problem),
      rows_(problem.rows),
      columns_(problem.columns),
      weights_(static_cast<size_t>(problem.weight.numel())),
      target_(weights_.size()) {
  for (const double square : problem.squares) norms_.push_back(std::sqrt(square) + 1e-8);
}

// rows · the square matrix + beta · into.
void AdmmRounds::add_rows(const Array<float>& rows, const float* square, float beta,
                          Array<float>& into) const {
  gemm({.m = rows_,
        .n = columns_,
        .k = columns_,
        .a = rows.data(),
        .b = square,
        .c = into.data(),
        .beta = beta});
}

void AdmmRounds::scale() {
  const float* weight = problem_.weight.data();
  for (size_t i = 0; i < weights_.size(); ++i) {
    weights_[i] = static_cast<float>(weight[i] * norms_[i % norms_.size()]);
  }
}

// A, as floats, gives A W₀; A + ρI, as doubles, the inverse. The doubles are freed before the
// rounds, which take memory for choosing masks; in vectors, for an Array's block would be kept.
void AdmmRounds::factor() {
  const std::span<const double> gram = problem_.gram.matrix();
  double mean = 0.0;  // of A's diagonal: 1 but for dead inputs
  for (size_t i = 0; i < norms_.size(); ++i) {
    mean += problem_.squares[i] / (norms_[i] * norms_[i]) / static_cast<double>(columns_);
  }
  if (mean == 0.0) mean = 1.0;
  const bool is_automatic = problem_.options.damping == OneShotOptions::kAutomaticDamping;
  if (is_automatic) mean = 1.0;  // as each of its elements is
  const auto write = [&](auto& into, double on_diagonal, bool is_lower) {
    using Number = std::remove_reference_t<decltype(into[0])>;
    parallel_for(columns_, 16, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const double norm = norms_[static_cast<size_t>(i)];
        for (int64_t j = 0; j < columns_; ++j) {
          const auto at = static_cast<size_t>(i * columns_ + j);
          double value = gram[at] / (norm * norms_[static_cast<size_t>(j)]);
          if (j == i) value += on_diagonal;
          if (j > i && is_lower) value = 0.0;
          into[at] = static_cast<Number>(value);
        }
      }
    });
  };
  std::vector<double> lower;
  const auto attempt = [&](double damping) {
    lower = std::vector<double>();
    {
      std::vector<float> scaled(gram.size());
      write(scaled, damping * mean, false);
      add_rows(weights_, scaled.data(), 0.0f, target_);
    }
    lower = std::vector<double>(gram.size());
    write(lower, damping * mean + problem_.options.rho, true);
    return cholesky(columns_, lower.data(), kSmallestPivot) == columns_;
  };
  const double damping = is_automatic ? automatic_damping(problem_.gram) : problem_.options.damping;
  factor_damped(of_layer(problem_.layer), damping, attempt, messages_);
  invert_lower(columns_, lower.data());
  square_lower(columns_, lower.data());
  inverse_ = symmetric_floats(columns_, std::move(lower));
  sum_ = weights_;
}

// What of `present` is left when a part of the way to `keep` is gone.
int64_t AdmmRounds::on_the_way(int64_t present, int64_t keep, double progress) const {
  const auto all = static_cast<double>(present);
  const std::optional<double> sparsity = problem_.options.sparsity;
  const double pruned =
      sparsity ? all * (*sparsity * progress) : static_cast<double>(present - keep) * progress;
  return std::max(present - static_cast<int64_t>(pruned), keep);
}

MaskSet AdmmRounds::choose(double progress) {
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
MaskSet AdmmRounds::choose_on_the_way(int64_t count) {
  const MaskSet& present = problem_.present;
  MaskSet fullest = keep_largest(problem_, sum_, present.count(), {});
  if (count <= fullest.count()) return keep_largest(problem_, sum_, count, {});
  const BitMask& safe = fullest.bits();
  const auto scores = std::span(weights_).first(static_cast<size_t>(present.count()));
  size_t place = 0;
  present.positions().for_each([&](int64_t i) {
    scores[place++] = safe.test(i) ? std::numeric_limits<float>::infinity()
                                   : std::abs(sum_[static_cast<size_t>(i)]);
  });
  return MaskSelector({}, {}, present.shape()).keep(present, scores, count);
}

// Of X as weights, what is kept of each row.
std::vector<float> AdmmRounds::scales_of(const MaskSet& mask) const {
  Tensor kept = Tensor::zeros(problem_.weight.shape());
  float* into = kept.mutable_data();
  mask.positions().for_each([&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    into[i] = static_cast<float>(sum_[at] / norms_[at % norms_.size()]);
  });
  return grid_scales(kept, *problem_.options.grid_in_rounds);
}

// X from a mask and the X before it.
void AdmmRounds::round(const MaskSet& mask, bool is_last_mask) {
  const auto rho = static_cast<float>(problem_.options.rho);
  const BitMask& kept = mask.bits();
  std::vector<float> scales;  // of a grid that the kept ones are projected onto, too
  if (is_last_mask && problem_.options.grid_in_rounds) scales = scales_of(mask);
  const auto projected = [&](size_t at) {
    if (scales.empty()) return sum_[at];
    const size_t columns = norms_.size();
    const auto norm = static_cast<float>(norms_[at % columns]);
    return on_grid(sum_[at] / norm, scales[at / columns]) * norm;
  };
  constexpr int64_t kGrain = int64_t{1} << 14;
  // Off the mask X is what the penalty has summed up, to which W is added.
  parallel_for(static_cast<int64_t>(sum_.size()), kGrain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const auto at = static_cast<size_t>(i);
      const bool stays = kept.test(i);
      // The projection Z: the target is ρ(Z − U) with U = X − Z, which X keeps.
      const float onto = stays ? projected(at) : 0.0f;
      weights_[at] = target_[at] + rho * (stays ? 2.0f * onto - sum_[at] : -sum_[at]);
      sum_[at] -= onto;
    }
  });
  add_rows(weights_, inverse_.data(), 1.0f, sum_);
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
    round(mask, is_there);
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
