// What config.cpp and config_text.cpp share: a node of the tree, and scalars as text. Not
// installed, and included by nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lacuna/framework/config/config.h"

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

  /// The child of a map that has the key; null if there is none. *Cost:* that of a hash table.
  Entry* find(std::string_view key);
  void erase(std::string_view key);

 private:
  /// Of a large map, which would else be gone through for each of its keys: where the first of its
  /// children are, as many as it holds.
  std::unordered_map<std::string, size_t> places_;
};

namespace internal {

/// The shortest text that reads back as this value and as no integer.
std::string shortest_decimal(float value);
std::string shortest_decimal(double value);

// A plain (unquoted) scalar as a number, integer or truth value, where its text is one.
std::optional<double> parse_number(std::string_view text);
/// Integer: int64_t or uint64_t.
template <class Integer>
std::optional<Integer> parse_integer(std::string_view text);
std::optional<bool> parse_bool(std::string_view text);
bool is_null_text(std::string_view text);

}  // namespace internal

}  // namespace lacuna
