#include "common/operands.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lacuna/framework/core/random.h"

namespace lacuna::bench {
namespace {

constexpr double kSkew = 0.75;  // standard deviation of the logarithm of a row's weight

std::vector<float> weights(int64_t count, std::string_view name, Degrees degrees) {
  const CounterRng rng(1, name);
  std::vector<float> weight(static_cast<size_t>(count), 1.0f);
  if (degrees == Degrees::Uniform) return weight;
  for (size_t i = 0; i < weight.size(); ++i) {
    weight[i] = static_cast<float>(std::exp(kSkew * rng.normal(i)));
  }
  return weight;
}

}  // namespace

Tensor random_tensor(const Shape& shape, std::string_view name, Order order) {
  const CounterRng rng(1, name);
  Tensor tensor = Tensor::empty(shape);
  uint64_t i = 0;
  for (float& value : tensor.mutable_storage()) value = 2.0f * rng.uniform(i++) - 1.0f;
  return tensor.to(order);  // the same elements in either order
}

// Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006: the positions with
// the smallest of the exponential variables whose rates are the weights.
BitMask random_mask(int64_t rows, int64_t columns, double sparsity, Degrees degrees) {
  const std::vector<float> row_weight = weights(rows, "row weights", degrees);
  const std::vector<float> column_weight = weights(columns, "column weights", degrees);
  const CounterRng rng(1, "mask");
  std::vector<float> keys(static_cast<size_t>(rows * columns));
  for (int64_t r = 0, i = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c, ++i) {
      const float u = 1.0f - rng.uniform(static_cast<uint64_t>(i));  // above 0
      keys[static_cast<size_t>(i)] = -std::log(u) / (row_weight[static_cast<size_t>(r)] *
                                                     column_weight[static_cast<size_t>(c)]);
    }
  }
  const auto kept = std::llround((1.0 - sparsity) * static_cast<double>(keys.size()));
  std::vector<float> sorted = keys;
  BitMask mask = BitMask::zeros(static_cast<int64_t>(keys.size()));
  if (kept == 0) return mask;
  std::ranges::nth_element(sorted, sorted.begin() + kept - 1);
  const float largest = sorted[static_cast<size_t>(kept - 1)];
  int64_t ties = kept - std::ranges::count_if(keys, [&](float key) { return key < largest; });
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] < largest || (keys[i] == largest && ties-- > 0)) mask.set(static_cast<int64_t>(i));
  }
  return mask;
}

}  // namespace lacuna::bench
