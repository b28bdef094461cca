#include "lacuna/framework/param/initializer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "lacuna/framework/core/normal_of_words.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/select/draws.hpp"

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

// The block of the generator that value `index` is made of.
uint64_t block_of(Initializer::Kind kind, int64_t index) {
  return static_cast<uint64_t>(kind == Initializer::Kind::Uniform ? index / 4 : index);
}

float value_of(const Initializer& from, std::span<const uint32_t, 4> block, int64_t index,
               double gain) {
  double drawn = 0.0;
  if (from.kind == Initializer::Kind::Uniform) {
    drawn = 2.0 * CounterRng::uniform_of(block[static_cast<size_t>(index % 4)]) - 1.0;
  } else if (from.kind == Initializer::Kind::Normal) {
    drawn = normal_of_words(block[0], block[1]);
  } else if (from.kind == Initializer::Kind::TruncatedNormal) {
    drawn = normal_within_two(block[0]);
  }
  return static_cast<float>(from.center + from.spread * gain * drawn);
}

// Writes values one after the other, and draws the words of many at a time.
class ValueWriter {
 public:
  ValueWriter(const Initializer& from, const CounterRng& rng, float* into)
      : from_(from), rng_(rng), into_(into) {}
  ~ValueWriter() { flush(); }
  ValueWriter(const ValueWriter&) = delete;
  ValueWriter& operator=(const ValueWriter&) = delete;

  void add(int64_t index, double gain) {
    if (count_ == kMost) flush();
    indices_[count_] = index;
    gains_[count_++] = gain;
  }

 private:
  static constexpr size_t kMost = 128;

  void flush() {
    std::array<uint64_t, kMost> blocks;
    std::array<uint32_t, 4 * kMost> words;
    for (size_t i = 0; i < count_; ++i) blocks[i] = block_of(from_.kind, indices_[i]);
    draw_blocks(rng_, std::span(blocks).first(count_), words);
    for (size_t i = 0; i < count_; ++i) {
      const std::span<const uint32_t, 4> block(words.data() + 4 * i, 4);
      *into_++ = value_of(from_, block, indices_[i], gains_[i]);
    }
    count_ = 0;
  }

  const Initializer& from_;
  const CounterRng& rng_;
  float* into_;
  std::array<int64_t, kMost> indices_;
  std::array<double, kMost> gains_;
  size_t count_ = 0;
};

}  // namespace

float Initializer::value(const CounterRng& rng, int64_t index, double gain) const {
  if (kind == Kind::Constant) return static_cast<float>(center);
  const auto block = rng.block(block_of(kind, index));
  return value_of(*this, block, index, gain);
}

void Initializer::fill(const CounterRng& rng, std::span<float> values) const {
  if (kind == Kind::Constant) {
    std::ranges::fill(values, static_cast<float>(center));
    return;
  }
  parallel_for(static_cast<int64_t>(values.size()), 1 << 14, [&](int64_t begin, int64_t end) {
    ValueWriter writer(*this, rng, values.data() + begin);
    for (int64_t i = begin; i < end; ++i) writer.add(i, 1.0);
  });
}

void Initializer::fill(const CounterRng& rng, const Positions& positions, std::span<float> values,
                       int64_t taps) const {
  if (kind == Kind::Constant) {
    std::ranges::fill(values, static_cast<float>(center));
    return;
  }
  const int64_t rows = positions.rows(), columns = positions.columns();
  std::vector<int64_t> outputs;  // per input
  if (fan == Fan::InAndOut) outputs = count_inputs(positions, taps);
  parallel_for(rows, 256, [&](int64_t begin, int64_t end) {
    ValueWriter writer(*this, rng,
                       values.data() + positions.row_begin()[static_cast<size_t>(begin)]);
    for (int64_t row = begin; row < end; ++row) {
      // An output without inputs has no values either, so there is no division by 0.
      const auto inputs = static_cast<int64_t>(positions.row(row).size());
      const double of_row = fan == Fan::In && inputs > 0 ? growth(columns, inputs) : 1.0;
      for (const uint32_t column : positions.row(row)) {
        const double of_value = outputs.empty()
                                    ? of_row
                                    : growth(columns + rows * taps,
                                             inputs + outputs[static_cast<size_t>(column / taps)]);
        writer.add(row * columns + column, of_value);
      }
    }
  });
}

}  // namespace lacuna
