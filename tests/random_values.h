// Random arrays for tests: functions of their names.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// Uniform in [−1, 1).
inline std::vector<float> random_values(int64_t count, std::string_view name) {
  const CounterRng rng(3, name);
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 2.0f * rng.uniform(i) - 1.0f;
  return values;
}

inline Tensor random_tensor(const Shape& shape, std::string_view name) {
  return Tensor::from(shape, random_values(shape.numel(), name));
}

}  // namespace lacuna
