#include "lacuna/framework/text/character_tokenizer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/text/tokenizer_json.hpp"
#include "lacuna/framework/text/unicode.hpp"
#include "lacuna/framework/text/utf8.hpp"

namespace lacuna {
namespace {

constexpr size_t kAscii = 128;

std::vector<char32_t> single_characters(const std::vector<std::string>& tokens) {
  std::vector<char32_t> characters;
  for (const std::string& token : tokens) {
    require_utf8(token);
    const std::vector<char32_t> codes = unicode::code_points(token);
    if (codes.size() != 1) {
      throw DataError(fmt::format("the token '{}' is not one character", printable(token)));
    }
    if (!characters.empty() && codes.front() <= characters.back()) {
      throw DataError(fmt::format("the character '{}' is out of order", printable(token)));
    }
    characters.push_back(codes.front());
  }
  return characters;
}

}  // namespace

CharacterTokenizer CharacterTokenizer::of(std::string_view text, Unknown unknown) {
  require_utf8(text);
  std::vector<bool> occurs(0x110000);
  size_t end = 0;  // behind the largest
  for (size_t at = 0; at < text.size();) {
    const size_t code = unicode::next(text, at);
    occurs[code] = true;
    end = std::max(end, code + 1);
  }
  std::vector<char32_t> characters;
  for (size_t code = 0; code < end; ++code) {
    if (occurs[code]) characters.push_back(static_cast<char32_t>(code));
  }
  return {CodePoints{std::move(characters)}, unknown};
}

CharacterTokenizer::CharacterTokenizer(const std::vector<std::string>& tokens, Unknown unknown)
    : CharacterTokenizer(CodePoints{single_characters(tokens)}, unknown) {}

CharacterTokenizer::CharacterTokenizer(CodePoints characters, Unknown unknown)
    : characters_(std::move(characters.ascending)), unknown_(unknown), ascii_ids_(kAscii, -1) {
  if (characters_.empty()) throw DataError("a text without characters has no vocabulary");
  for (size_t id = 0; id < characters_.size() && characters_[id] < kAscii; ++id) {
    ascii_ids_[characters_[id]] = static_cast<int32_t>(id);
  }
}

int64_t CharacterTokenizer::id_of(char32_t character) const {
  if (character < kAscii) return ascii_ids_[character];
  const auto found = std::ranges::lower_bound(characters_, character);
  if (found == characters_.end() || *found != character) return -1;
  return found - characters_.begin();
}

std::vector<int64_t> CharacterTokenizer::encode(std::string_view text) const {
  require_utf8(text);
  std::vector<int64_t> ids;
  ids.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t character = unicode::next(text, at);
    int64_t id = id_of(character);
    if (id < 0 && unknown_ == Unknown::Token) id = characters();
    if (id < 0) {
      throw DataError(
          fmt::format("{}: the character '{}' (U+{:04X}) is not in the vocabulary of {} "
                      "characters; the tokenizer `bytes` accepts any text, and a new run with unk: "
                      "true maps unknown characters to [UNK]",
                      unicode::place(text, begin), printable(text.substr(begin, at - begin)),
                      static_cast<uint32_t>(character), vocabulary_size()));
    }
    ids.push_back(id);
  }
  return ids;
}

std::string CharacterTokenizer::decode(std::span<const int64_t> ids) const {
  require_ids(ids, vocabulary_size());
  std::string text;
  for (const int64_t id : ids) {
    if (id == characters()) {
      text += kUnknown;
    } else {
      unicode::append(text, characters_[static_cast<size_t>(id)]);
    }
  }
  return text;
}

std::string CharacterTokenizer::token(int64_t id) const { return decode({&id, 1}); }

std::optional<int64_t> CharacterTokenizer::find(std::string_view token) const {
  const auto matches = [&](int64_t id) { return decode({&id, 1}) == token; };
  if (token == kUnknown && unknown_ == Unknown::Token) return characters();
  if (token.empty() || token.size() > 4) return std::nullopt;
  for (int64_t id = 0; id < characters(); ++id) {
    if (matches(id)) return id;
  }
  return std::nullopt;
}

std::string CharacterTokenizer::to_json() const {
  TokenizerParts parts{.kind = "characters"};
  for (int64_t id = 0; id < characters(); ++id) parts.tokens.push_back(token(id));
  if (unknown_ == Unknown::Token) parts.flags["unk"] = true;
  return render_tokenizer(parts);
}

}  // namespace lacuna
