#include "lacuna/framework/core/random.h"

#include "lacuna/framework/core/normal_of_words.hpp"

namespace lacuna {

uint64_t hash_name(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return c;
}

CounterRng::CounterRng(uint64_t seed, std::string_view name, uint64_t stream) : stream_(stream) {
  // The key mixes seed and name through one Philox block, so that near seeds give unrelated keys.
  const uint64_t hash = hash_name(name);
  const auto mixed = philox({static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32), 0, 0},
                            {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  key_ = {mixed[0], mixed[1]};
}

std::array<uint32_t, 4> CounterRng::block(uint64_t block) const {
  return philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                 static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                key_);
}

uint32_t CounterRng::bits(uint64_t index) const { return block(index / 4)[index % 4]; }

float CounterRng::uniform(uint64_t index) const { return uniform_of(bits(index)); }

double CounterRng::normal(uint64_t index) const {
  const auto words = block(index);
  return normal_of_words(words[0], words[1]);
}

uint64_t CounterRng::below(uint64_t index, uint64_t bound) const {
  return below_of(block(index), bound);
}

uint64_t CounterRng::below_of(std::span<const uint32_t, 4> words, uint64_t bound) {
  // Each index owns one block: two 64-bit draws. A draw at or above the largest multiple of bound
  // is rejected (probability bound / 2⁶⁴ at most); the second is then taken as it is.
  const uint64_t first = uint64_t{words[1]} << 32 | words[0];
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  if (first < limit) return first % bound;
  return (uint64_t{words[3]} << 32 | words[2]) % bound;
}

}  // namespace lacuna
