#include "lacuna/framework/program/command_line/number_checks.hpp"

#include <fmt/core.h>

#include <cmath>
#include <optional>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

template <class Number>
std::optional<Number> number_of(const std::string& text) {
  const Config given = Config::plain(text);
  if (!given.is_number()) return std::nullopt;
  try {
    return given.as<Number>();
  } catch (const ConfigError&) {  // not whole, or larger than the type's largest
    return std::nullopt;
  }
}

std::string found(const std::string& text) { return text.empty() ? "nothing" : text; }

}  // namespace

std::string whole_number_error(std::string& text, const std::string& what, int64_t least,
                               int64_t most) {
  const auto number = number_of<int64_t>(text);
  if (!number || *number < least || *number > most) {
    return fmt::format("expected {} from {} to {}, found {}", what, least, most, found(text));
  }
  text = std::to_string(*number);
  return "";
}

std::string finite_number_error(const std::string& text) {
  const auto number = number_of<double>(text);
  if (number && std::isfinite(*number) && *number >= 0.0) return "";
  return "expected a finite number of at least 0, found " + found(text);
}

}  // namespace lacuna
