#include "lacuna/framework/data/hashes/data_hash.h"

#include <algorithm>
#include <bit>

#include "lacuna/framework/data/formats/token_sequence.hpp"

namespace lacuna {
namespace {

uint64_t bits(uint8_t value) { return value; }
uint64_t bits(float value) { return std::bit_cast<uint32_t>(value); }
uint64_t bits(int64_t value) { return std::bit_cast<uint64_t>(value); }

// Of at most eight bytes, the first lowest, whatever the machine's own order.
template <class T>
uint64_t packed(const T* values, size_t count) {
  uint64_t word = 0;
  for (size_t i = 0; i < count; ++i) word |= bits(values[i]) << (8 * sizeof(T) * i);
  return word;
}

// A single chain over 8 bytes at a time, since every value is to change all that follows.
template <class T>
uint64_t hash_all(std::span<const T> values, uint64_t hash) {
  constexpr size_t kInWord = 8 / sizeof(T);
  size_t i = 0;
  for (; i + kInWord <= values.size(); i += kInWord) {
    hash = joined_hash(hash, packed(values.data() + i, kInWord));
  }
  return i == values.size() ? hash
                            : joined_hash(hash, packed(values.data() + i, values.size() - i));
}

template <class T>
uint64_t hash_of(std::span<const T> values, const HashLimits& limits, uint64_t before) {
  const auto size = static_cast<int64_t>(values.size());
  uint64_t hash = joined_hash(before, values.size());
  if (size <= limits.all_up_to / static_cast<int64_t>(sizeof(T)) || size <= limits.samples) {
    return hash_all(values, hash);
  }
  for (int64_t i = 0; i < limits.samples; ++i) {
    const auto at = static_cast<size_t>(evenly_spread(i, limits.samples, size));
    hash = joined_hash(hash, bits(values[at]));
  }
  return hash;
}

}  // namespace

uint64_t joined_hash(uint64_t hash, uint64_t word) {
  return std::rotl(hash ^ word, 29) * 0x9E3779B97F4A7C15u;  // odd, so that nothing is lost
}

uint64_t hash_values(std::span<const uint8_t> values, const HashLimits& limits, uint64_t before) {
  return hash_of(values, limits, before);
}

uint64_t hash_values(std::span<const float> values, const HashLimits& limits, uint64_t before) {
  return hash_of(values, limits, before);
}

uint64_t hash_values(std::span<const int64_t> values, const HashLimits& limits, uint64_t before) {
  return hash_of(values, limits, before);
}

uint64_t hash_tokens(const TokenSequence& tokens, int64_t begin, int64_t end,
                     const HashLimits& limits) {
  constexpr int64_t kAtOnce = int64_t{1} << 14, kTogether = 64, kBytes = 4;
  const int64_t size = end - begin;
  uint64_t hash = joined_hash(kEmptyHash, static_cast<uint64_t>(size));
  std::vector<int64_t> ids;
  const auto add = [&](int64_t at, int64_t count) {
    ids.resize(static_cast<size_t>(count));
    tokens.read(begin + at, ids);
    hash = hash_all<int64_t>(ids, hash);
  };
  if (size <= limits.all_up_to / kBytes || size <= limits.samples) {
    for (int64_t at = 0; at < size; at += kAtOnce) add(at, std::min(kAtOnce, size - at));
    return hash;
  }
  const int64_t together = std::min(kTogether, limits.samples);
  const int64_t runs = limits.samples / together, last = size - together;
  for (int64_t i = 0; i < runs; ++i) add(evenly_spread(i, runs, last + 1), together);
  return hash;
}

int64_t evenly_spread(int64_t i, int64_t count, int64_t size) {
  if (count >= size) return i;
  const int64_t steps = std::max<int64_t>(1, count - 1), last = size - 1;
  return last / steps * i + last % steps * i / steps;
}

}  // namespace lacuna
