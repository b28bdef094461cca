#include "lacuna/framework/train/data/examples_hash.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace lacuna {
namespace {

constexpr int64_t kFewExamples = 32;
constexpr int64_t kMostValues = int64_t{1} << 20;  // where that is more of them
constexpr int64_t kMostAtOnce = int64_t{1} << 17;  // images may be large

uint64_t joined(uint64_t hash, uint64_t number) { return (hash ^ number) * 0x100000001b3u; }

uint64_t numbers_hash(std::span<const int64_t> numbers, uint64_t before) {
  for (const int64_t number : numbers) before = joined(before, std::bit_cast<uint64_t>(number));
  return before;
}

std::vector<int64_t> spread_over(int64_t size, int64_t values) {
  const int64_t count = std::min(size, std::max(kFewExamples, kMostValues / values));
  const int64_t steps = std::max<int64_t>(1, count - 1), last = size - 1;
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < count; ++i) {
    indices.push_back(last / steps * i + last % steps * i / steps);
  }
  return indices;
}

}  // namespace

uint64_t values_hash(std::span<const float> values, uint64_t before) {
  for (const float value : values) before = joined(before, std::bit_cast<uint32_t>(value));
  return before;
}

uint64_t examples_hash(const Dataset& data) {
  uint64_t hash = values_hash({});
  const int64_t values = std::max<int64_t>(1, data.example_shape().numel());
  const std::vector<int64_t> indices = spread_over(data.size(), values);
  const auto at_once = static_cast<size_t>(std::max<int64_t>(1, kMostAtOnce / values));
  for (size_t at = 0; at < indices.size(); at += at_once) {
    const size_t count = std::min(at_once, indices.size() - at);
    const Batch batch = data.gather(std::span(indices).subspan(at, count));
    if (batch.inputs.defined()) hash = values_hash(batch.inputs.to_vector(), hash);
    if (batch.targets.defined()) hash = values_hash(batch.targets.to_vector(), hash);
    if (batch.labels.defined()) hash = numbers_hash(batch.labels.values(), hash);
    for (const auto& [name, numbers] : batch.named) hash = numbers_hash(numbers.values(), hash);
  }
  return hash;
}

}  // namespace lacuna
