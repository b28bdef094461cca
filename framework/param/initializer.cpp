#include "lacuna/framework/param/initializer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "lacuna/framework/core/parallel.h"

namespace lacuna {
namespace {

// The number of nonzeros of each input: a column, or a channel at all taps.
std::vector<int64_t> count_inputs(const Positions& positions, int64_t taps) {
  std::vector<int64_t> counts(static_cast<size_t>(positions.columns() / taps));
  for (int64_t row = 0; row < positions.rows(); ++row) {
    for (const uint32_t column : positions.row(row)) ++counts[static_cast<size_t>(column / taps)];
  }
  return counts;
}

// A number from the standard normal within ±2, given by a word: the point at which the cumulative
// distribution equals the word's fraction. Winitzki's approximation of the inverse error function
// is accurate to 0.2 %, and each of Halley's steps triples the digits.
double normal_within_two(uint32_t word) {
  constexpr double kWithin = 0.954499736103641585599434725667;  // Φ(2) − Φ(−2)
  constexpr double kA = 0.147;
  const double y = kWithin * ((word + 0.5) * 0x1.0p-31 - 1.0);  // erf(x/√2)
  const double logarithm = std::log1p(-y * y), b = 2.0 / (std::numbers::pi * kA) + logarithm / 2.0;
  double x = std::copysign(std::sqrt(2.0 * (std::sqrt(b * b - logarithm / kA) - b)), y);
  for (int step = 0; step < 2; ++step) {
    const double density = std::exp(-0.5 * x * x) * std::sqrt(2.0 / std::numbers::pi);
    const double error = (std::erf(x / std::numbers::sqrt2) - y) / density;
    x -= error / (1.0 + 0.5 * x * error);
  }
  return std::clamp(x, -2.0, 2.0);
}

double growth(int64_t all, int64_t left) {
  return std::sqrt(static_cast<double>(all) / static_cast<double>(left));
}

}  // namespace

float Initializer::value(const CounterRng& rng, int64_t index, double gain) const {
  const auto i = static_cast<uint64_t>(index);
  switch (kind) {
    case Kind::Constant:
      return static_cast<float>(center);
    case Kind::Uniform:
      return static_cast<float>(center + spread * gain * (2.0 * rng.uniform(i) - 1.0));
    case Kind::Normal:
      return static_cast<float>(center + spread * gain * rng.normal(i));
    case Kind::TruncatedNormal:
      return static_cast<float>(center + spread * gain * normal_within_two(rng.block(i)[0]));
  }
  return 0.0f;
}

void Initializer::fill(const CounterRng& rng, std::span<float> values) const {
  parallel_for(static_cast<int64_t>(values.size()), 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] = value(rng, i);
  });
}

void Initializer::fill(const CounterRng& rng, const Positions& positions, std::span<float> values,
                       int64_t taps) const {
  const int64_t rows = positions.rows(), columns = positions.columns();
  std::vector<int64_t> outputs;  // per input
  if (fan == Fan::InAndOut) outputs = count_inputs(positions, taps);
  parallel_for(rows, 256, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      // An output without inputs has no values either, so there is no division by 0.
      const auto inputs = static_cast<int64_t>(positions.row(row).size());
      const double of_row = fan == Fan::In && inputs > 0 ? growth(columns, inputs) : 1.0;
      auto into = static_cast<size_t>(positions.row_begin()[static_cast<size_t>(row)]);
      for (const uint32_t column : positions.row(row)) {
        const double of_value = outputs.empty()
                                    ? of_row
                                    : growth(columns + rows * taps,
                                             inputs + outputs[static_cast<size_t>(column / taps)]);
        values[into++] = value(rng, row * columns + column, of_value);
      }
    }
  });
}

}  // namespace lacuna
