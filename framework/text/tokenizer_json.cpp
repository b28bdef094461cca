#include "lacuna/framework/text/tokenizer_json.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"

namespace lacuna {
namespace {

using Json = nlohmann::json;
using Strings = std::vector<std::string>;
using Value = std::variant<std::string, uint64_t, bool, Strings>;

struct Entry {
  std::string key;
  Value value;
};

// Takes one object of texts, numbers, flags and lists of texts as it is read, for a tree of it
// would keep one of two equal keys without an error. Whatever is deeper is refused where it begins.
class ObjectReader final : public nlohmann::json_sax<Json> {
 public:
  /// `expected`: what an entry's value is to be, for messages.
  explicit ObjectReader(const char* expected) : expected_(expected) {}

  std::vector<Entry> take() { return std::move(entries_); }

  bool null() override { refuse("null"); }
  bool number_integer(number_integer_t value) override {
    refuse(fmt::format("the number {}", value));
  }
  bool number_float(number_float_t, const string_t& text) override { refuse("the number " + text); }
  bool binary(binary_t&) override { refuse("bytes"); }
  bool boolean(bool value) override { return put(value, value ? "true" : "false"); }
  bool number_unsigned(number_unsigned_t value) override {
    return put(uint64_t{value}, fmt::format("the number {}", value));
  }
  bool string(string_t& text) override {
    if (level_ != Level::List) return put(text, "text");
    std::get<Strings>(entries_.back().value).push_back(std::move(text));
    return true;
  }
  bool start_object(std::size_t) override {
    if (level_ != Level::File) refuse("an object");
    level_ = Level::Object;
    return true;
  }
  bool key(string_t& key) override {
    if (!keys_.insert(key).second)
      throw DataError(fmt::format("'{}' appears twice", printable(key)));
    key_ = key;
    return true;
  }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override {
    put(Strings{}, "a list");
    level_ = Level::List;
    return true;
  }
  bool end_array() override {
    level_ = Level::Object;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const std::string text = error.what();  // "[json.exception.parse_error.101] parse error at …"
    const size_t reason = text.find("] ");
    throw DataError(fmt::format("not JSON (at byte {}): {}", position,
                                reason == std::string::npos ? text : text.substr(reason + 2)));
  }

 private:
  enum class Level { File, Object, List };

  bool put(Value value, const std::string& found) {
    if (level_ != Level::Object) refuse(found);
    entries_.push_back({key_, std::move(value)});
    return true;
  }

  [[noreturn]] void refuse(const std::string& found) const {
    if (level_ == Level::File) throw DataError("expected an object, found " + found);
    if (level_ == Level::List) {
      throw DataError(
          fmt::format("in the list '{}': expected text, found {}", printable(key_), found));
    }
    throw DataError(fmt::format("'{}': expected {}, found {}", printable(key_), expected_, found));
  }

  const char* expected_;
  std::vector<Entry> entries_;
  std::set<std::string> keys_;
  std::string key_;  // the last one read
  Level level_ = Level::File;
};

std::vector<Entry> parse_object(std::string_view text, const char* expected) {
  // The library takes a zero byte for the end and passes over a byte order mark.
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') {
    throw DataError("not JSON: it does not begin with '{'");
  }
  if (text.find('\0') != std::string_view::npos) {
    throw DataError("not JSON: there is a zero byte in it");
  }
  ObjectReader reader(expected);
  Json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

}  // namespace

bool TokenizerParts::flag(const std::string& name) const {
  const auto found = flags.find(name);
  if (found == flags.end()) {
    throw DataError(fmt::format("a tokenizer of the kind '{}' needs '{}'", printable(kind), name));
  }
  return found->second;
}

std::string render_tokenizer(const TokenizerParts& parts) {
  nlohmann::ordered_json json;
  json["tokenizer"] = parts.kind;
  for (const auto& [name, value] : parts.flags) json[name] = value;
  if (!parts.tokens.empty()) json["tokens"] = parts.tokens;
  if (!parts.merges.empty()) json["merges"] = parts.merges;
  return json.dump();
}

TokenizerParts parse_tokenizer(std::string_view text) {
  TokenizerParts parts;
  for (Entry& entry : parse_object(text, "text, true, false or a list of texts")) {
    auto* const words = std::get_if<Strings>(&entry.value);
    if (entry.key == "tokens" && words != nullptr) {
      parts.tokens = std::move(*words);
    } else if (entry.key == "merges" && words != nullptr) {
      parts.merges = std::move(*words);
    } else if (entry.key == "tokenizer" && std::holds_alternative<std::string>(entry.value)) {
      parts.kind = std::get<std::string>(entry.value);
    } else if (const bool* flag = std::get_if<bool>(&entry.value)) {
      parts.flags[entry.key] = *flag;
    } else {
      throw DataError(fmt::format("'{}' is not a part of a tokenizer, or has a wrong value",
                                  printable(entry.key)));
    }
  }
  if (parts.kind.empty()) throw DataError("'tokenizer', its kind, is missing");
  return parts;
}

std::vector<std::string> parse_vocabulary(std::string_view text) {
  std::vector<Entry> entries = parse_object(text, "the token's id, a whole number from 0");
  std::vector<std::optional<std::string>> by_id(entries.size());
  for (Entry& entry : entries) {
    const uint64_t* id = std::get_if<uint64_t>(&entry.value);
    if (id == nullptr) {
      throw DataError(
          fmt::format("the token '{}': expected its id, a number from 0", printable(entry.key)));
    }
    if (*id >= by_id.size()) {
      throw DataError(fmt::format(
          "the token '{}' has the id {}, and with {} tokens ids are 0 to {}: there is a gap",
          printable(entry.key), *id, by_id.size(), by_id.size() - 1));
    }
    std::optional<std::string>& place = by_id[*id];
    if (place) {
      throw DataError(fmt::format("the tokens '{}' and '{}' both have the id {}", printable(*place),
                                  printable(entry.key), *id));
    }
    place = std::move(entry.key);
  }
  std::vector<std::string> tokens;
  tokens.reserve(by_id.size());
  for (std::optional<std::string>& token : by_id) tokens.push_back(std::move(*token));
  return tokens;  // as many ids as places, none twice: all are there
}

}  // namespace lacuna
