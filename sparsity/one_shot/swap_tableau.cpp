#include "lacuna/sparsity/one_shot/swap_tableau.hpp"

#include <utility>

#include "lacuna/sparsity/one_shot/damped_factor.hpp"

namespace lacuna {

SwapTableau::SwapTableau(std::vector<double> table, int64_t used, std::vector<int64_t> cells)
    : size_(static_cast<int64_t>(cells.size())),
      table_(std::move(table)),
      cells_(std::move(cells)),
      is_used_(cells_.size(), 0) {
  for (int64_t i = 0; i < size_; ++i) smallest_.push_back(kSmallestPivot * row(i)[i]);
  for (int64_t i = 0; i < used; ++i) pivot(i);
}

// Of a variable in use the diagonal is minus that of the inverse, so that a pivot undoes itself.
void SwapTableau::pivot(int64_t variable) {
  const double* pivots = row(variable);
  const double d = pivots[variable];
  const double sign = is_used(variable) ? -1.0 : 1.0;
  for (int64_t i = 0; i <= size_; ++i) {
    double* other = row(i);
    const double factor = other[variable] / d;
    if (i == variable || factor == 0.0) continue;
    for (int64_t j = 0; j <= size_; ++j) other[j] -= factor * pivots[j];
    other[variable] = sign * factor;
  }
  for (int64_t i = 0; i <= size_; ++i) row(variable)[i] *= sign / d;
  row(variable)[variable] = -1.0 / d;
  is_used_[static_cast<size_t>(variable)] ^= 1;
}

SwapTableau::Swap SwapTableau::best_swap(double least) {
  Swap best{.gain = least};
  for (int64_t in = 0; in < size_; ++in) {
    const double* line = row(in);
    const double rest = line[in];  // of its square, when those in use are taken out
    if (is_used(in) || !(rest > smallest_[static_cast<size_t>(in)])) continue;
    const double weight = line[size_] / rest;
    const double gain = weight * line[size_];
    if (!(gain > best.gain)) continue;
    for (int64_t out = 0; out < size_; ++out) {
      if (!is_used(out) || cells_[static_cast<size_t>(out)] != cells_[static_cast<size_t>(in)]) {
        continue;
      }
      const double* other = row(out);
      const double left = other[size_] - line[out] * weight;
      const double inverse = -other[out] + line[out] * line[out] / rest;
      const double total = gain - left * left / inverse;
      if (total > best.gain) best = {.out = out, .in = in, .gain = total};
    }
  }
  return best;
}

void SwapTableau::swap_while_better(double least) {
  for (int64_t count = 0; count < size_; ++count) {
    const Swap swap = best_swap(least);
    if (swap.in < 0) return;
    pivot(swap.in);
    pivot(swap.out);
  }
}

}  // namespace lacuna
