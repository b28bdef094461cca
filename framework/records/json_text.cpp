#include "lacuna/framework/records/json_text.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

using nlohmann::json;

constexpr int kDeepest = 64;

std::optional<Config> config_of(const json& value, int depth) {
  if (depth > kDeepest) return std::nullopt;
  if (value.is_object() || value.is_array()) {
    Config result = value.is_object() ? Config::map() : Config::list();
    for (const auto& [key, child] : value.items()) {
      const std::optional<Config> inner = config_of(child, depth + 1);
      if (!inner) return std::nullopt;
      if (value.is_object()) {
        result.set(key, *inner);
      } else {
        result.push_back(*inner);
      }
    }
    return result;
  }
  if (value.is_boolean()) return Config(value.get<bool>());
  if (value.is_number_unsigned()) return Config(value.get<uint64_t>());
  if (value.is_number_integer()) return Config(value.get<int64_t>());
  if (value.is_number()) return Config(value.get<double>());
  if (value.is_string()) return Config(value.get<std::string>());
  return Config();
}

// Bytes of the well-formed sequence that text begins with; 0 when it begins with none.
size_t sequence_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t count = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < count) return 0;
  for (size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(1);  // overlong forms, surrogates and what lies past U+10FFFF
  const bool is_allowed = !(first == 0xE0 && second < 0xA0) && !(first == 0xED && second > 0x9F) &&
                          !(first == 0xF0 && second < 0x90) && !(first == 0xF4 && second > 0x8F);
  return is_allowed ? count : 0;
}

}  // namespace

std::optional<Config> parse_json(std::string_view text) {
  const json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  return config_of(value, 0);
}

std::string clean_utf8(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = sequence_bytes(text);
    const auto first = static_cast<unsigned char>(text[0]);
    const bool is_control =
        (first < 0x20 && first != '\t' && first != '\n' && first != '\r') || first == 0x7F;
    if (bytes == 0 || is_control) {
      clean += "\xEF\xBF\xBD";
    } else {
      clean += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return clean;
}

namespace {

// Of a number's text, as configurations have it.
bool text_is_finite(const std::string& text) {
  return text.find("nan") == std::string::npos && text.find("inf") == std::string::npos &&
         text.find("NaN") == std::string::npos;
}

// The number below a node that is NaN or infinite, or null.
Config find_not_finite(const Config& node) {
  if (node.is_number()) return text_is_finite(node.text()) ? Config() : node;
  std::vector<Config> below;
  if (node.is_list()) below = node.items();
  if (node.is_map()) {
    for (const auto& [key, value] : node.entries()) below.push_back(value);
  }
  for (const Config& child : below) {
    if (const Config found = find_not_finite(child); !found.is_null()) return found;
  }
  return {};
}

}  // namespace

std::string json_text(const Config& report) {
  const Config found = find_not_finite(report);
  if (!found.is_null()) {
    throw Error("the result '" + found.path() + "' is NaN or infinite, which JSON cannot express");
  }
  return report.to_json_indented();
}

}  // namespace lacuna
