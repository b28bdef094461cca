// Numbers of things in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lacuna {

/// "1 step", "0 steps", "3 steps". `nouns` is the plural of a noun that does not take an "s":
/// `plural(3, "class", "classes")`.
std::string plural(int64_t count, std::string_view noun, std::string_view nouns = "");

}  // namespace lacuna
