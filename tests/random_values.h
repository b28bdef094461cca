// Random arrays for tests: functions of their names.
#pragma once

#include <algorithm>
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
  for (size_t i = 0; i < values.size(); i += 4) {
    const auto words = rng.block(i / 4);
    for (size_t k = i; k < std::min(i + 4, values.size()); ++k) {
      values[k] = 2.0f * CounterRng::uniform_of(words[k - i]) - 1.0f;
    }
  }
  return values;
}

inline Tensor random_tensor(const Shape& shape, std::string_view name) {
  return Tensor::from(shape, random_values(shape.numel(), name));
}

}  // namespace lacuna
