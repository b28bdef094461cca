// A training step of one weight, timed in two layouts.
#pragma once

#include <optional>
#include <string>

#include "lacuna/framework/layouts/cost/cost_model.hpp"

namespace lacuna {

/// Weights that are assumed to have the same cost per element: one of them, as large as is useful,
/// is measured for all.
struct WeightClass {
  const Layout* compressed = nullptr;
  PatternLifetime lifetime = PatternLifetime::ManySteps;
  int64_t out = 0, in = 0, batch = 0;
  int half_powers = 0;  ///< the density is 2^(−half_powers / 2)
  /// For a convolution's weight, in place of `out`, `in` and `batch`.
  std::optional<ConvolutionShape> convolution = {};
  /// For a dense convolution, a single product: then not two layouts are timed but two algorithms,
  /// direct (in masked's place) and Winograd's.
  enum class Product { Step, Forward, InputGradient, WeightGradient };
  Product product = Product::Step;

  double density() const;
  /// A word that identifies the class and this machine's instruction set.
  std::string key() const;
};

/// More rows are not timed: their cost is extrapolated from these and from fewer.
inline constexpr int64_t kMostTimedRows = 256;

/// The class of a weight that is multiplied by this number of rows per batch, at most
/// kMostTimedRows. *Requires* rank 2.
WeightClass class_of(const Layout& compressed, PatternLifetime lifetime, const Shape& shape,
                     int half_powers, int64_t rows);

/// The class of a convolution's weight in csr.
WeightClass class_of(const ConvolutionShape& shape, int half_powers);

/// The time of a step in layout masked and in the compressed one, at random positions: in one
/// thread, so that choices based on it do not depend on a run's number of threads.
LayoutCosts time_steps(const WeightClass& c);

}  // namespace lacuna
