// Config as text: how scalars are read off theirs, and the tree written as JSON and YAML.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "lacuna/framework/config/config_internal.hpp"
#include "lacuna/framework/core/input_checks.hpp"

namespace lacuna {

namespace internal {

namespace {

template <class Float>
std::string shortest_of(Float value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  std::string digits(text, end);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits;
}

}  // namespace

std::string shortest_decimal(float value) { return shortest_of(value); }
std::string shortest_decimal(double value) { return shortest_of(value); }

std::optional<double> parse_number(std::string_view text) {
  if (text == ".nan" || text == ".NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == ".inf" || text == "+.inf") return std::numeric_limits<double>::infinity();
  if (text == "-.inf") return -std::numeric_limits<double>::infinity();
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  if (text.empty() || text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) {
    return std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class Integer>
std::optional<Integer> parse_integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  // 1e6 and 60000.0 are integers too, where they are whole and exact in a double.
  const std::optional<double> number = parse_number(text);
  if (number && std::floor(*number) == *number && std::abs(*number) <= 0x1.0p53 &&
      (*number >= 0 || std::is_signed_v<Integer>)) {
    return static_cast<Integer>(*number);
  }
  return std::nullopt;
}

template std::optional<int64_t> parse_integer(std::string_view text);
template std::optional<uint64_t> parse_integer(std::string_view text);

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "true" || text == "True" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "False" || text == "no" || text == "off") return false;
  return std::nullopt;
}

bool is_null_text(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

}  // namespace internal

namespace {

using internal::is_null_text;
using internal::parse_bool;
using internal::parse_integer;
using internal::parse_number;
using internal::shortest_decimal;

std::string quote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  const bool is_text = is_utf8(text);
  for (const char c : text) {
    if (!is_text && static_cast<unsigned char>(c) >= 0x80) {
      quoted += "\\ufffd";  // both formats are UTF-8, and a reader would stop here
      continue;
    }
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (c == '\r') {
      quoted += "\\r";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += "\\u00";
      quoted += kHex[(static_cast<unsigned char>(c) >> 4) & 15];
      quoted += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// Whether text can stand in YAML without quotes and still be read as the same string.
bool safe_plain(std::string_view text) {
  if (is_null_text(text) || parse_number(text) || parse_bool(text)) return false;
  if (text.front() == ' ' || text.back() == ' ') return false;
  // Three dots would end the document, a byte order mark at its beginning would be dropped.
  if (text.starts_with("...") || text.starts_with("\xEF\xBB\xBF")) return false;
  if (std::string_view("-?:,[]{}#&*!|<>'\"%@`").find(text.front()) != std::string_view::npos) {
    return false;
  }
  return is_utf8(text) && text.find_first_of(":#\n\r\t\"'{}[],&*") == std::string_view::npos &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x20; });
}

std::string scalar_json(const Config& config) {
  const std::string text = config.text();
  if (config.is_bool()) return *parse_bool(text) ? "true" : "false";
  if (config.is_number()) {
    const double value = *parse_number(text);
    if (!std::isfinite(value)) return "null";
    if (text.find_first_of(".eE+") == std::string::npos) {
      if (const auto integer = parse_integer<int64_t>(text)) return std::to_string(*integer);
      if (const auto integer = parse_integer<uint64_t>(text)) return std::to_string(*integer);
    }
    return shortest_decimal(value);
  }
  return quote(text);
}

void write_json(const Config& config, int depth, std::string& out) {
  const bool indented = depth >= 0;
  const auto new_line = [&](int level) {
    if (indented) out.append("\n").append(static_cast<size_t>(2 * level), ' ');
  };
  const int inner = indented ? depth + 1 : depth;
  if (config.is_null()) {
    out += "null";
  } else if (config.is_scalar()) {
    out += scalar_json(config);
  } else if (config.is_list()) {
    out += "[";
    bool first = true;
    for (const Config& item : config.items()) {
      if (!first) out += indented ? "," : ", ";
      first = false;
      new_line(inner);
      write_json(item, inner, out);
    }
    if (!first) new_line(depth);
    out += "]";
  } else {
    out += "{";
    bool first = true;
    for (const auto& [key, value] : config.entries()) {
      if (!first) out += indented ? "," : ", ";
      first = false;
      new_line(inner);
      out += quote(key) + ": ";
      write_json(value, inner, out);
    }
    if (!first) new_line(depth);
    out += "}";
  }
}

std::string text_yaml(const std::string& text) { return safe_plain(text) ? text : quote(text); }

// YAML allows a key in front of its colon 1,024 characters; longer ones are announced.
std::string key_yaml(const std::string& key) {
  const std::string text = text_yaml(key);
  return text.size() < 1000 ? text : "? " + text + "\n";
}

}  // namespace

std::string Config::to_json() const {
  std::string out;
  write_json(*this, -1, out);
  return out;
}

std::string Config::to_json_indented() const {
  std::string out;
  write_json(*this, 0, out);
  return out + "\n";
}

std::string Config::to_yaml() const {
  if (is_null()) return "null\n";
  // Text that came unquoted may still need quotes here: a folded one has line breaks in it.
  if (is_scalar()) return (is_number() || is_bool() ? text() : text_yaml(text())) + "\n";
  if (node_->children.empty()) return is_list() ? "[]\n" : "{}\n";
  std::string out;
  for (const auto& [key, child] : node_->children) {
    const std::string head = is_list() ? "-" : key_yaml(key) + ":";
    const std::string body = child.to_yaml();
    const bool nested = (child.is_map() || child.is_list()) && !child.node_->children.empty();
    if (!nested) {
      out += head + " " + body;
      continue;
    }
    // A child's lines are indented by two; a list's first line stands behind its dash.
    std::string indented;
    size_t begin = 0;
    while (begin < body.size()) {
      const size_t end = body.find('\n', begin) + 1;
      indented += "  " + body.substr(begin, end - begin);
      begin = end;
    }
    out += is_list() ? "- " + indented.substr(2) : head + "\n" + indented;
  }
  return out;
}

}  // namespace lacuna
