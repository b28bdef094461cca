#include "lacuna/framework/config/integer_range.h"

#include <fmt/core.h>

#include <limits>

namespace lacuna {

int64_t require_integer(const Config& map, std::string_view key, int64_t value, int64_t low,
                        int64_t high) {
  if (value < low || value > high) {
    map.get(key).fail(fmt::format("an integer from {} to {}", low, high));
  }
  return value;
}

int64_t require_at_least(const Config& map, std::string_view key, int64_t value, int64_t low) {
  if (value < low) map.get(key).fail(fmt::format("an integer of at least {}", low));
  if (value > kMostInteger)
    map.get(key).fail(fmt::format("an integer of at most {}", kMostInteger));
  return value;
}

uint64_t read_seed(const Config& map) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return static_cast<uint64_t>(require_integer(map, "seed", map.get<int64_t>("seed", 0), 0, kMost));
}

}  // namespace lacuna
