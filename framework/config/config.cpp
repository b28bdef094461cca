// The tree of options: its nodes, typed reading, paths and changes. Its text is in config_text.cpp.
#include "lacuna/framework/config/config.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "lacuna/framework/config/config_internal.hpp"
#include "lacuna/framework/config/familiar_names.hpp"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/core/plural.hpp"

namespace lacuna {

using internal::is_null_text;
using internal::parse_bool;
using internal::parse_integer;
using internal::parse_number;
using internal::shortest_decimal;

namespace {

// As deep as YAML may nest: whatever walks a tree does so by recursion.
constexpr std::ptrdiff_t kMostPathParts = 100;

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
Config::Config(float value) : Config(plain(shortest_decimal(value))) {}
Config::Config(double value) : Config(plain(shortest_decimal(value))) {}
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

std::string SourcePosition::text() const {
  return line > 0 ? fmt::format("{}:{}:{}", file, line, column) : file;
}

std::string Config::where() const {
  std::string text = node_->position.text();
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
      return "a list of " + plural(static_cast<int64_t>(node_->children.size()), "value");
    case Kind::Map:
      return "a map";
  }
  return "";
}

void Config::error(std::string_view message) const {
  // An error of a value that --set gave, thrown through a node of the file: its place is stated.
  if (message.starts_with("--set ")) throw ConfigError(std::string(message));
  throw ConfigError(where() + ": " + std::string(message));
}

void Config::fail(std::string_view expected) const {
  error("expected " + std::string(expected) + ", found " +
        (is_scalar() ? "'" + printable(text()) + "'" : text()));
}

Config::Entry* Config::Node::find(std::string_view key) {
  constexpr size_t kFew = 32;
  if (children.size() <= kFew) {
    const auto entry = std::ranges::find(children, key, &Entry::first);
    return entry == children.end() ? nullptr : &*entry;
  }
  for (size_t i = places_.size(); i < children.size(); ++i) places_.emplace(children[i].first, i);
  const auto place = places_.find(std::string(key));
  return place == places_.end() ? nullptr : &children[place->second];
}

void Config::Node::erase(std::string_view key) {
  std::erase_if(children, [&](const Entry& entry) { return entry.first == key; });
  places_.clear();
}

Config Config::get(std::string_view key) const {
  if (!is_map() && !is_null()) fail("a map");
  node_->read = true;
  node_->asked.emplace(key);
  if (const Entry* entry = node_->find(key)) {
    entry->second.node_->read = true;
    return entry->second;
  }
  Config absent;
  absent.node_->path = path().empty() ? std::string(key) : path() + "." + std::string(key);
  absent.node_->position = position();
  return absent;
}

bool Config::has(std::string_view key) const { return !get(key).is_null(); }

Config Config::at(std::string_view key) const {
  const Config child = get(key);
  if (!child.is_null()) return child;
  for (const auto& [name, other] : node_->children) {
    if (other.node_->read || (!is_misspelling(name, key) && !is_familiar(name, key))) continue;
    other.error("unknown key '" + name + "'; did you mean '" + std::string(key) +
                "', which is required and missing?");
  }
  child.error("a required key is missing");
}

Config Config::peek(std::string_view dotted_path) const {
  if (const Entry* entry = node_->find(dotted_path)) return entry->second;
  for (size_t dot = dotted_path.find('.'); dot != std::string_view::npos;
       dot = dotted_path.find('.', dot + 1)) {
    const Entry* section = node_->find(dotted_path.substr(0, dot));
    if (section == nullptr) continue;  // perhaps a key that holds dots
    Config found = section->second.peek(dotted_path.substr(dot + 1));
    if (!found.is_null()) return found;
  }
  return {};
}

const std::vector<Config::Entry>& Config::children() const& { return node_->children; }

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
      const std::string advice = suggest_key(key, path(), known);
      child.error("unknown key '" + key + "'" + (advice.empty() ? "" : "; " + advice));
    }
    child.require_all_read();
  }
}

bool Config::is_read() const { return node_->read; }

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
  if (Entry* entry = node_->find(key)) {
    entry->second = std::move(value);
  } else {
    node_->children.emplace_back(key, std::move(value));
  }
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

void Config::erase(std::string_view key) { node_->erase(key); }

void Config::set_path(std::string_view dotted_path, const Config& value) {
  if (std::ranges::count(dotted_path, '.') >= kMostPathParts) {
    error(fmt::format("the path '{}' has more than {} parts", printable(dotted_path, 60),
                      kMostPathParts));
  }
  const size_t dot = dotted_path.find('.');
  const std::string key(dotted_path.substr(0, dot));
  if (key.empty()) error("an empty name in the path '" + std::string(dotted_path) + "'");
  if (is_list()) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };  // 1e0 is no index
    const auto index =
        std::ranges::all_of(key, is_digit) ? parse_integer<int64_t>(key) : std::nullopt;
    const auto size = static_cast<int64_t>(node_->children.size());
    if (!index || *index >= size) {
      error(fmt::format("'{}' is not an index of this list, whose length is {}", printable(key, 60),
                        size));
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
    error("is the value '" + text() + "' and has no '" + key + "'; to replace it, set '" +
          node_->path + "' itself");
  }
  if (dot == std::string_view::npos) {
    set(key, value.clone());
    return;
  }
  if (Entry* entry = node_->find(key)) {
    return entry->second.set_path(dotted_path.substr(dot + 1), value);
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
    const Config::Entry* other = b.node_->find(entry.first);
    return other != nullptr && other->second == entry.second;
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
    fail("a 32-bit integer");
  }
  return static_cast<int>(value);
}
template <>
double Config::as<double>() const {
  const auto value = is_scalar() ? parse_number(node_->text) : std::nullopt;
  if (!value || std::isnan(*value)) fail("a number");
  return *value;
}
template <>
float Config::as<float>() const {
  const auto value = as<double>();
  if (std::isfinite(value) && std::abs(value) > double{std::numeric_limits<float>::max()}) {
    fail("a number of at most 3.4e38");
  }
  return static_cast<float>(value);
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

double require_range(const Config& map, std::string_view key, double value, double low,
                     double high) {
  if (!(value >= low && value <= high)) {
    map.get(key).fail("a number from " + shortest_decimal(low) + " to " + shortest_decimal(high));
  }
  return value;
}

}  // namespace lacuna
