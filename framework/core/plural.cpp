#include "lacuna/framework/core/plural.hpp"

#include <fmt/core.h>

namespace lacuna {

std::string plural(int64_t count, std::string_view noun, std::string_view nouns) {
  if (count == 1) return fmt::format("1 {}", noun);
  return nouns.empty() ? fmt::format("{} {}s", count, noun) : fmt::format("{} {}", count, nouns);
}

}  // namespace lacuna
