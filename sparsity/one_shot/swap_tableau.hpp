// SwapTableau: least squares over a few variables, some of which are in use.
#pragma once

#include <cstdint>
#include <vector>

namespace lacuna {

/// Looks for the set S of variables with the largest gain b_Sᵀ (K_SS)⁻¹ b_S, by swaps of one
/// variable for another. A symmetric tableau holds the inverse, weights and gradients of the
/// current set; a swap is two pivots of it.
class SwapTableau {
 public:
  /// The first `used` of `cells.size()` variables are in S. Variables swap with those of their cell
  /// alone. *Shapes:* table [variables + 1, variables + 1], symmetric: K and, at its end, b.
  /// *Requires* that K of those in use is positive definite.
  SwapTableau(std::vector<double> table, int64_t used, std::vector<int64_t> cells);

  /// Makes the swap that gains the most, again and again, while one gains more than `least`, and as
  /// many times as there are variables at most. *Cost:* 6 · variables² operations a swap.
  void swap_while_better(double least);
  /// Whether a variable is in S.
  bool is_used(int64_t variable) const { return is_used_[static_cast<size_t>(variable)] != 0; }

 private:
  struct Swap {
    int64_t out = -1, in = -1;
    double gain = 0.0;
  };

  double* row(int64_t i) { return table_.data() + i * (size_ + 1); }
  void pivot(int64_t variable);
  Swap best_swap(double least);

  int64_t size_;
  std::vector<double> table_;
  std::vector<double> smallest_;  // pivots of variables that depend on others too much
  std::vector<int64_t> cells_;
  std::vector<char> is_used_;
};

}  // namespace lacuna
