#include "lacuna/framework/train/data/token_fingerprint.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>
#include <vector>

#include "lacuna/framework/core/named_tensors.h"

namespace lacuna {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 22;
constexpr int64_t kAtOnce = 64;  // examples

// A step of FNV's kind by the number and not by the byte, turned so that high bits come down again.
uint64_t hashed(uint64_t hash, std::span<const int64_t> numbers) {
  for (const int64_t number : numbers) {
    hash = std::rotl(hash ^ static_cast<uint64_t>(number), 29) * 0x9E3779B97F4A7C15u;
  }
  return hash;
}

// Windows of a text overlap, and leaving out some of them leaves out no token as long as there are
// no more than a window's between two.
int64_t step_between(const Dataset& data) {
  const std::span<const int32_t> lengths = data.lengths();
  const int64_t tokens = lengths.empty()
                             ? data.size() * data.example_shape().numel()
                             : std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  return std::max<int64_t>(1, (tokens + kMostTokens - 1) / kMostTokens);
}

}  // namespace

std::optional<int64_t> token_fingerprint(const Dataset& data) {
  if (data.vocabulary_size() == 0 || data.size() == 0) return std::nullopt;
  const int64_t step = step_between(data);
  auto hash = static_cast<uint64_t>(data.size());
  for (int64_t first = 0; first < data.size(); first += kAtOnce * step) {
    std::vector<int64_t> indices;
    for (int64_t i = first; i < std::min(data.size(), first + kAtOnce * step); i += step) {
      indices.push_back(i);
    }
    const Batch batch = data.gather(indices);
    for (const auto& [name, numbers] : batch.named) hash = hashed(hash, numbers.values());
    if (batch.labels.defined()) hash = hashed(hash, batch.labels.values());
  }
  return std::bit_cast<int64_t>(hash);
}

}  // namespace lacuna
