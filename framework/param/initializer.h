// Initializer: a parameter's first values as a pure function of (seed, parameter name, position).
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/layouts/positions.h"

namespace lacuna {

/// A distribution of first values. Value i depends only on the generator's key and i, so a
/// compressed parameter draws only the values that it stores.
struct Initializer {
  enum class Kind {
    Constant,
    Uniform,
    Normal,
    TruncatedNormal  ///< Normal within 2 spreads of the center; its deviation is 0.88 spread
  };
  /// The connections of a weight [outputs, inputs] for which `spread` was computed. If a pattern
  /// leaves only a part of them, each value's spread grows by √(all / remaining).
  enum class Fan {
    Fixed,    ///< none: `spread` applies to all values, for any pattern
    In,       ///< the inputs of the value's output: the nonzeros of its row, at all taps
    InAndOut  ///< these, and the outputs of the value's input: the nonzeros of its column, or, for
              ///< a convolution, of its input channel at all taps
  };

  Kind kind = Kind::Constant;
  double center = 0.0;  ///< the constant, or the mean
  /// Half the width of Uniform, the standard deviation of Normal before it is truncated.
  double spread = 0.0;
  Fan fan = Fan::Fixed;

  static Initializer constant(double value) { return {Kind::Constant, value, 0.0}; }
  static Initializer uniform(double bound) { return {Kind::Uniform, 0.0, bound}; }
  static Initializer normal(double standard_deviation) {
    return {Kind::Normal, 0.0, standard_deviation};
  }
  static Initializer truncated_normal(double standard_deviation) {
    return {Kind::TruncatedNormal, 0.0, standard_deviation};
  }

  /// The value at `index`, its spread multiplied by `gain`.
  float value(const CounterRng& rng, int64_t index, double gain = 1.0) const;
  /// values[i] = value(rng, i). *Cost:* O(values), on several threads.
  void fill(const CounterRng& rng, std::span<float> values) const;
  /// values[i] = value(rng, position i), with the gain that `fan` gives, for a parameter with a
  /// sparse pattern. `taps`: those of the parameter (matrix_taps). *Cost:* O(positions); with
  /// Fan::InAndOut 8 bytes per column.
  void fill(const CounterRng& rng, const Positions& positions, std::span<float> values,
            int64_t taps = 1) const;
};

}  // namespace lacuna
