#include "lacuna/framework/program/settings/sweep_values.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"

namespace lacuna {
namespace {

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = '\0';
  for (const char c : text) {
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{' || c == '(') {
      ++depth;
    } else if (c == ']' || c == '}' || c == ')') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  for (std::string& value : values) value = trimmed(value);
  return values;
}

std::string without_quotes(const std::string& text) {
  const bool is_quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                         text.back() == text.front();
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

// Whether two values make the same run: 3 and 3.0, 1e-3 and 0.001, adam and "adam", [1, 2] and
// [1,2].
bool is_same_value(const std::string& one, const std::string& other) {
  if (one == other) return true;
  const Config a = Config::plain(one), b = Config::plain(other);
  if (a.is_number() && b.is_number()) return a.as<double>() == b.as<double>();
  if (a.is_bool() && b.is_bool()) return a.as<bool>() == b.as<bool>();
  if (a.is_number() != b.is_number()) return false;  // "3" in quotes is a text
  const auto plain = [](const std::string& text) {
    std::string kept = without_quotes(text);
    std::erase(kept, ' ');
    return kept;
  };
  return plain(one) == plain(other);
}

bool is_integer(const std::string& text) {
  const size_t begin = text.starts_with('-') ? 1 : 0;
  return text.size() > begin && text.size() < 16 &&
         std::all_of(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

// Of "log:1e-4..1e-2"; nothing where it is a value.
std::optional<SweepRange> range_of(const std::string& over, const std::string& value) {
  const size_t colon = value.find(':');
  const std::string kind = colon == std::string::npos ? "" : value.substr(0, colon);
  if (!kind.empty() && kind != "log" && kind != "linear") return std::nullopt;
  const std::string ends = kind.empty() ? value : value.substr(colon + 1);
  const size_t dots = ends.find("..");
  const auto fail = [&](const std::string& what) -> void {
    throw ConfigError("--over " + over + ": " + what);
  };
  if (dots == std::string::npos) {
    if (!kind.empty()) fail("expected a range, as " + kind + ":1..100");
    return std::nullopt;
  }
  const std::string from = trimmed(ends.substr(0, dots)), to = trimmed(ends.substr(dots + 2));
  const Config low = Config::plain(from), high = Config::plain(to);
  if (!low.is_number() || !high.is_number()) {
    if (kind.empty()) return std::nullopt;  // a text with dots in it, as "../data"
    fail("expected two numbers, as " + kind + ":1..100");
  }
  const SweepRange range{.low = low.as<double>(),
                         .high = high.as<double>(),
                         .is_logarithmic = kind == "log",
                         .is_whole = kind != "linear" && is_integer(from) && is_integer(to)};
  if (!std::isfinite(range.low) || !std::isfinite(range.high) || range.low >= range.high) {
    fail("the range ends where it begins, or before; expected LOW..HIGH");
  }
  if (range.is_logarithmic && range.low <= 0.0) {
    fail("a logarithmic range must begin above 0, found " + from);
  }
  return range;
}

// A value as --set takes it.
std::string assignment(const std::string& key, const Config& value) {
  return key + "=" + (value.is_null() ? "null" : value.to_json());
}

SweepAxis read_file(const std::string& path) {
  const Config file = load_yaml(path);
  if (!file.is_map() || file.entries().empty()) {
    file.error("expected a map from names to settings, as in `small: {model.0.out_features: 10}`");
  }
  SweepAxis axis{.text = path, .keys = {}, .settings = {}};
  for (const auto& [name, settings] : file.entries()) {
    if (!settings.is_map() && !settings.is_null()) {
      settings.error("expected a map from dotted keys to values");
    }
    SweepSetting& setting =
        axis.settings.emplace_back(SweepSetting{.label = name, .overrides = {}});
    if (settings.is_null()) continue;  // as configured
    for (const auto& [key, value] : settings.children()) {
      setting.overrides.push_back(assignment(key, value));
      if (std::ranges::find(axis.keys, key) == axis.keys.end()) axis.keys.push_back(key);
    }
  }
  return axis;
}

}  // namespace

std::string SweepRange::at(double place) const {
  double value = low + place * (high - low);
  if (is_whole && !is_logarithmic) value = std::floor(low + place * (high - low + 1.0));
  if (is_logarithmic) value = low * std::pow(high / low, place);
  if (is_whole) return fmt::format("{}", std::llround(std::clamp(value, low, high)));
  return fmt::format("{:.4g}", value);
}

std::vector<std::string> split_over(const std::string& over) {
  const size_t sign = over.find('=');
  if (sign == std::string::npos || trimmed(over.substr(0, sign)).empty()) {
    throw ConfigError("--over " + over +
                      ": expected path=value,value,..., or a YAML file of named "
                      "settings");
  }
  std::vector<std::string> parts{trimmed(over.substr(0, sign))};
  for (std::string& value : split_values(over.substr(sign + 1))) {
    if (value.empty()) throw ConfigError("--over " + over + ": a value is empty");
    const auto same = std::find_if(parts.begin() + 1, parts.end(),
                                   [&](const auto& other) { return is_same_value(other, value); });
    if (same != parts.end()) {
      throw ConfigError("--over " + over + ": the value " + value + " is given twice" +
                        (*same == value ? "" : ", as " + *same + " too"));
    }
    parts.push_back(std::move(value));
  }
  return parts;
}

SweepAxis read_axis(const std::string& over) {
  std::error_code unknown;
  const bool is_file =
      over.find('=') == std::string::npos && std::filesystem::is_regular_file(over, unknown);
  if (is_file) return read_file(over);
  const std::vector<std::string> parts = split_over(over);
  SweepAxis axis{.text = over, .keys = {parts[0]}, .settings = {}};
  for (size_t i = 1; i < parts.size(); ++i) {
    if (const auto range = range_of(over, parts[i])) {
      if (parts.size() > 2)
        throw ConfigError("--over " + over + ": a range cannot be combined with other values");
      axis.range.push_back(*range);
      continue;
    }
    const std::string text = parts[0] + "=" + parts[i];
    axis.settings.push_back({.label = text, .overrides = {text}});
  }
  return axis;
}

}  // namespace lacuna
