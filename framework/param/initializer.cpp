#include "lacuna/framework/param/initializer.h"

#include "lacuna/framework/core/parallel.h"

namespace lacuna {

float Initializer::value(const CounterRng& rng, int64_t index) const {
  const auto i = static_cast<uint64_t>(index);
  switch (kind) {
    case Kind::Constant:
      return static_cast<float>(center);
    case Kind::Uniform:
      return static_cast<float>(center + spread * (2.0 * rng.uniform(i) - 1.0));
    case Kind::Normal:
      return static_cast<float>(center + spread * rng.normal(i));
  }
  return 0.0f;
}

void Initializer::fill(const CounterRng& rng, std::span<float> values) const {
  parallel_for(static_cast<int64_t>(values.size()), 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] = value(rng, i);
  });
}

void Initializer::fill(const CounterRng& rng, const Positions& positions,
                       std::span<float> values) const {
  parallel_for(positions.rows(), 256, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      auto into = static_cast<size_t>(positions.row_begin()[static_cast<size_t>(row)]);
      for (const uint32_t column : positions.row(row)) {
        values[into++] = value(rng, row * positions.columns() + column);
      }
    }
  });
}

}  // namespace lacuna
