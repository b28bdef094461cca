#include "lacuna/framework/core/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/names.h"

namespace lacuna {

struct Config::Node {
  Kind kind = Kind::Null;
  std::string text;
  bool quoted = false;
  std::vector<Entry> children;  // of a list, under the keys "0", "1", …
  std::string path;
  SourcePosition position;
  bool read = false;
  std::set<std::string, std::less<>> asked;
};

namespace {

template <class Float>
std::string shortest(Float value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  std::string digits(text, end);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits;
}

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

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "true" || text == "True" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "False" || text == "no" || text == "off") return false;
  return std::nullopt;
}

bool is_null_text(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

std::string quote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
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
  return text.find_first_of(":#\n\r\t\"'{}[],&*") == std::string_view::npos &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x20; });
}

}  // namespace

Config::Config() : node_(std::make_shared<Node>()) {}

Config Config::plain(std::string text) {
  Config config;
  if (is_null_text(text)) return config;
  config.node_->kind = Kind::Scalar;
  config.node_->text = std::move(text);
  return config;
}

Config::Config(bool value) : Config(plain(value ? "true" : "false")) {}
Config::Config(int value) : Config(plain(std::to_string(value))) {}
Config::Config(int64_t value) : Config(plain(std::to_string(value))) {}
Config::Config(uint64_t value) : Config(plain(std::to_string(value))) {}
Config::Config(float value) : Config(plain(shortest(value))) {}
Config::Config(double value) : Config(plain(shortest(value))) {}
Config::Config(const char* value) : Config(std::string(value)) {}
Config::Config(std::string value) : Config() {
  node_->kind = Kind::Scalar;
  node_->text = std::move(value);
  node_->quoted = true;
}

Config Config::list(std::vector<Config> items) {
  Config config;
  config.node_->kind = Kind::List;
  for (Config& item : items) config.push_back(std::move(item));
  return config;
}

Config Config::map(std::vector<Entry> entries) {
  Config config;
  config.node_->kind = Kind::Map;
  for (Entry& entry : entries) config.set(entry.first, std::move(entry.second));
  return config;
}

Config::Kind Config::kind() const { return node_->kind; }

bool Config::is_number() const {
  return is_scalar() && !node_->quoted && parse_number(node_->text).has_value();
}

bool Config::is_bool() const {
  return is_scalar() && !node_->quoted && parse_bool(node_->text).has_value();
}

const std::string& Config::path() const { return node_->path; }
const SourcePosition& Config::position() const { return node_->position; }
void Config::set_position(SourcePosition position) { node_->position = std::move(position); }

std::string Config::where() const {
  std::string text;
  const SourcePosition& at = node_->position;
  if (!at.file.empty()) text = at.file;
  if (at.line > 0) text += ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
  if (!node_->path.empty()) text += (text.empty() ? "" : ": ") + node_->path;
  return text.empty() ? "config" : text;
}

std::string Config::text() const {
  switch (kind()) {
    case Kind::Null:
      return "nothing";
    case Kind::Scalar:
      return node_->text;
    case Kind::List:
      return "a list of " + std::to_string(node_->children.size());
    case Kind::Map:
      return "a map";
  }
  return "";
}

void Config::error(std::string_view message) const {
  throw ConfigError(where() + ": " + std::string(message));
}

void Config::fail(std::string_view expected) const {
  error("expected " + std::string(expected) + ", found " +
        (is_scalar() ? "'" + text() + "'" : text()));
}

Config Config::get(std::string_view key) const {
  if (!is_map() && !is_null()) fail("a map");
  node_->read = true;
  node_->asked.emplace(key);
  for (const Entry& entry : node_->children) {
    if (entry.first == key) {
      entry.second.node_->read = true;
      return entry.second;
    }
  }
  Config absent;
  absent.node_->path = path().empty() ? std::string(key) : path() + "." + std::string(key);
  absent.node_->position = position();
  return absent;
}

bool Config::has(std::string_view key) const { return !get(key).is_null(); }

Config Config::at(std::string_view key) const {
  const Config child = get(key);
  if (child.is_null()) child.error("a required key is missing");
  return child;
}

std::vector<Config> Config::items() const {
  if (!is_list()) fail("a list");
  node_->read = true;
  std::vector<Config> items;
  for (const Entry& entry : node_->children) {
    entry.second.node_->read = true;
    items.push_back(entry.second);
  }
  return items;
}

std::vector<Config::Entry> Config::entries() const {
  if (!is_map() && !is_null()) fail("a map");
  node_->read = true;
  for (const Entry& entry : node_->children) {
    node_->asked.insert(entry.first);
    entry.second.node_->read = true;
  }
  return node_->children;
}

void Config::require_all_read() const {
  for (const auto& [key, child] : node_->children) {
    if (!child.node_->read) {
      const std::vector<std::string> known(node_->asked.begin(), node_->asked.end());
      child.error("unknown key '" + key + "'" +
                  (known.empty() ? "" : "; " + suggest_name(key, known)));
    }
    child.require_all_read();
  }
}

void Config::mark_read() const {
  node_->read = true;
  for (const auto& [key, child] : node_->children) {
    node_->asked.insert(key);
    child.mark_read();
  }
}

void Config::adopt(Config child, const std::string& key) const {
  child.node_->path = path().empty() ? key : path() + "." + key;
  if (child.node_->position.file.empty()) child.node_->position = position();
  for (const auto& [name, grandchild] : child.node_->children) child.adopt(grandchild, name);
}

void Config::set(std::string_view key, Config value) {
  if (is_null()) node_->kind = Kind::Map;
  if (!is_map()) fail("a map");
  adopt(value, std::string(key));
  for (Entry& entry : node_->children) {
    if (entry.first == key) {
      entry.second = std::move(value);
      return;
    }
  }
  node_->children.emplace_back(key, std::move(value));
}

void Config::set_default(std::string_view key, Config value) const {
  value.mark_read();
  Config self(node_);
  self.set(key, std::move(value));
}

void Config::push_back(Config value) {
  if (is_null()) node_->kind = Kind::List;
  if (!is_list()) fail("a list");
  std::string index = std::to_string(node_->children.size());
  adopt(value, index);
  node_->children.emplace_back(std::move(index), std::move(value));
}

void Config::erase(std::string_view key) {
  std::erase_if(node_->children, [&](const Entry& entry) { return entry.first == key; });
}

void Config::set_path(std::string_view dotted_path, const Config& value) {
  const size_t dot = dotted_path.find('.');
  const std::string key(dotted_path.substr(0, dot));
  if (key.empty()) error("an empty name in the path '" + std::string(dotted_path) + "'");
  if (is_list()) {
    const std::optional<int64_t> index = parse_integer<int64_t>(key);
    const auto size = static_cast<int64_t>(node_->children.size());
    if (!index || *index < 0 || *index >= size) {
      error("'" + key + "' is not an index of this list of " + std::to_string(size));
    }
    Entry& entry = node_->children[static_cast<size_t>(*index)];
    if (dot == std::string_view::npos) {
      Config copy = value.clone();
      adopt(copy, key);
      entry.second = copy;
    } else {
      entry.second.set_path(dotted_path.substr(dot + 1), value);
    }
    return;
  }
  if (is_scalar()) {
    error("is the value '" + text() + "' and has no '" + key + "' inside");
  }
  if (dot == std::string_view::npos) {
    set(key, value.clone());
    return;
  }
  for (Entry& entry : node_->children) {
    if (entry.first == key) return entry.second.set_path(dotted_path.substr(dot + 1), value);
  }
  set(key, map());
  node_->children.back().second.set_path(dotted_path.substr(dot + 1), value);
}

Config Config::clone() const {
  Config copy;
  copy.node_->kind = kind();
  copy.node_->text = node_->text;
  copy.node_->quoted = node_->quoted;
  copy.node_->path = path();
  copy.node_->position = position();
  for (const auto& [key, child] : node_->children) {
    copy.node_->children.emplace_back(key, child.clone());
  }
  return copy;
}

bool operator==(const Config& a, const Config& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is_scalar()) {
    if (a.is_number() != b.is_number() || a.is_bool() != b.is_bool()) return false;
    if (a.is_bool()) return parse_bool(a.node_->text) == parse_bool(b.node_->text);
    if (!a.is_number()) return a.node_->text == b.node_->text;
    const double x = *parse_number(a.node_->text), y = *parse_number(b.node_->text);
    return x == y || (std::isnan(x) && std::isnan(y));
  }
  if (a.node_->children.size() != b.node_->children.size()) return false;
  return std::ranges::all_of(a.node_->children, [&](const Config::Entry& entry) {
    return std::ranges::any_of(b.node_->children, [&](const Config::Entry& other) {
      return other.first == entry.first && other.second == entry.second;
    });
  });
}

template <>
std::string Config::as<std::string>() const {
  if (!is_scalar()) fail("text");
  return node_->text;
}
template <>
bool Config::as<bool>() const {
  const auto value = is_scalar() ? parse_bool(node_->text) : std::nullopt;
  if (!value) fail("true or false");
  return *value;
}
template <>
int64_t Config::as<int64_t>() const {
  const auto value = is_scalar() ? parse_integer<int64_t>(node_->text) : std::nullopt;
  if (!value) fail("an integer");
  return *value;
}
template <>
uint64_t Config::as<uint64_t>() const {
  const auto value = is_scalar() ? parse_integer<uint64_t>(node_->text) : std::nullopt;
  if (!value) fail("an integer of 0 or more");
  return *value;
}
template <>
int Config::as<int>() const {
  const auto value = as<int64_t>();
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) {
    fail("an integer of 32 bits");
  }
  return static_cast<int>(value);
}
template <>
double Config::as<double>() const {
  const auto value = is_scalar() ? parse_number(node_->text) : std::nullopt;
  if (!value) fail("a number");
  return *value;
}
template <>
float Config::as<float>() const {
  return static_cast<float>(as<double>());
}

namespace {
template <class T>
std::vector<T> list_as(const Config& config) {
  std::vector<T> values;
  for (const Config& item : config.items()) values.push_back(item.as<T>());
  return values;
}
}  // namespace

template <>
std::vector<std::string> Config::as<std::vector<std::string>>() const {
  return list_as<std::string>(*this);
}
template <>
std::vector<int64_t> Config::as<std::vector<int64_t>>() const {
  return list_as<int64_t>(*this);
}
template <>
std::vector<double> Config::as<std::vector<double>>() const {
  return list_as<double>(*this);
}

namespace {

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
    return shortest(value);
  }
  return quote(text);
}

void write_json(const Config& config, int depth, std::string& out) {
  const bool indented = depth >= 0;
  const auto new_line = [&](int level) {
    if (indented) out += "\n" + std::string(static_cast<size_t>(2 * level), ' ');
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
    const std::string head = is_list() ? "-" : text_yaml(key) + ":";
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

double require_range(const Config& map, std::string_view key, double value, double low,
                     double high) {
  if (!(value >= low && value <= high)) {
    map.get(key).fail("a number from " + shortest(low) + " to " + shortest(high));
  }
  return value;
}

int64_t require_at_least(const Config& map, std::string_view key, int64_t value, int64_t low) {
  if (value < low) map.get(key).fail("an integer of at least " + std::to_string(low));
  return value;
}

}  // namespace lacuna
