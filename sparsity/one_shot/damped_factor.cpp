#include "lacuna/sparsity/one_shot/damped_factor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"

namespace lacuna {

double automatic_damping(const InputGram& gram) {
  constexpr double kMostShrinkage = 0.5, kMostRowsPerInput = 8.0;
  const std::vector<double> squares = gram.squares();
  const auto live = static_cast<double>(
      std::ranges::count_if(squares, [](double square) { return square > 0.0; }));
  if (live == 0.0) return 0.0;
  const std::span<const double> matrix = gram.matrix();
  std::vector<double> of_rows(squares.size());  // of the squares of correlations
  parallel_for(gram.features(), 16, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const double* row = matrix.data() + i * gram.features();
      const double square = squares[static_cast<size_t>(i)];
      double sum = 0.0;
      for (size_t j = 0; j < squares.size(); ++j) {
        if (square > 0.0 && squares[j] > 0.0) {
          sum += std::min(row[j] / square * (row[j] / squares[j]), 1.0);
        }
      }
      of_rows[static_cast<size_t>(i)] = sum;
    }
  });
  const double sum = std::accumulate(of_rows.begin(), of_rows.end(), 0.0);
  const double rows = std::min(static_cast<double>(gram.rows()), kMostRowsPerInput * live);
  const double noise = (1.0 - 2.0 / live) * sum + live * live;
  const double signal = (rows + 1.0 - 2.0 / live) * std::max(sum - live, 0.0);
  const double shrinkage = noise < kMostShrinkage * signal ? noise / signal : kMostShrinkage;
  return shrinkage / (1.0 - shrinkage);
}

double raised(double damping) { return std::max(10.0 * damping, kSmallestPivot); }

bool is_hopeless(double damping) { return !(damping <= 100.0); }

float shortest(double damping) { return static_cast<float>(damping); }

double factor_damped(const std::string& whose, double damping,
                     const std::function<bool(double)>& factor,
                     std::vector<std::string>& messages) {
  double enough = damping;
  while (!factor(enough)) {
    enough = raised(enough);
    if (is_hopeless(enough)) {
      throw DataError(
          fmt::format("{}the Gram matrix of its inputs cannot be factored, with any damping from "
                      "{} to {}; check the calibration inputs, give other examples "
                      "(`calibration`), normalize the data, or leave the layer out of param_filter",
                      whose, shortest(damping), 100.0));
    }
  }
  if (enough != damping) {
    messages.push_back(
        fmt::format("{}the Gram matrix of its inputs is singular with damping {}: damping is "
                    "raised to {}; more calibration examples may help",
                    whose, shortest(damping), shortest(enough)));
  }
  return enough;
}

}  // namespace lacuna
