// What config.cpp and config_text.cpp share: a node of the tree, and scalars as text. Not
// installed, and included by nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/core/config.h"

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
