// A training step of one weight, timed in two layouts.
#pragma once

#include <optional>
#include <string>

#include "lacuna/framework/layouts/cost/cost_model.hpp"

namespace lacuna {

/// Weights that are taken to cost the same for each of their elements: what one of them, as large
/// as is worth while, is measured for.
struct WeightClass {
  const Layout* compressed = nullptr;
  PatternLifetime lifetime = PatternLifetime::ManySteps;
  int64_t out = 0, in = 0, batch = 0;
  int half_powers = 0;  ///< the density is 2^(−half_powers / 2)
  /// Of a convolution's weight, instead of `out`, `in` and `batch`.
  std::optional<ConvolutionShape> convolution = {};
  /// Of a dense convolution a single product: what is timed is not two layouts but two algorithms,
  /// direct (in masked's place) and Winograd's.
  enum class Product { Step, Forward, InputGradient, WeightGradient };
  Product product = Product::Step;

  double density() const;
  /// A word that names the class and this machine's instruction set.
  std::string key() const;
};

/// More rows are not timed: what they cost follows from these and from fewer.
inline constexpr int64_t kMostTimedRows = 256;

/// The class of a weight that a batch multiplies that many rows by, kMostTimedRows at most.
/// *Requires* rank 2.
WeightClass class_of(const Layout& compressed, PatternLifetime lifetime, const Shape& shape,
                     int half_powers, int64_t rows);

/// The class of a convolution's weight in csr.
WeightClass class_of(const ConvolutionShape& shape, int half_powers);

/// What a step takes in layout masked and in the compressed one, at random positions: in one
/// thread, so that what is chosen by it does not depend on how many a run has.
LayoutCosts time_steps(const WeightClass& c);

}  // namespace lacuna
