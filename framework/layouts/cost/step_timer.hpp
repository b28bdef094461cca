// A training step of one weight, timed in two layouts.
#pragma once

#include <string>

#include "lacuna/framework/layouts/cost/cost_model.h"

namespace lacuna {

/// Weights that are taken to cost the same for each of their elements: what one of them, as large
/// as is worth while, is measured for.
struct WeightClass {
  const Layout* compressed = nullptr;
  PatternLifetime lifetime = PatternLifetime::ManySteps;
  int64_t out = 0, in = 0, batch = 0;
  int half_powers = 0;  ///< the density is 2^(−half_powers / 2)

  double density() const;
  /// A word that names the class, this machine's instruction set and the number of threads.
  std::string key() const;
};

/// The class of a weight. *Requires* rank 2.
WeightClass class_of(const Layout& compressed, PatternLifetime lifetime, const Shape& shape,
                     int half_powers, int64_t batch);

/// What a step takes in layout masked and in the compressed one, at random positions.
LayoutCosts time_steps(const WeightClass& c);

}  // namespace lacuna
