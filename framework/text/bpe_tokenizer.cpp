#include "lacuna/framework/text/bpe_tokenizer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/text/bpe_merges.hpp"
#include "lacuna/framework/text/bpe_pieces.hpp"
#include "lacuna/framework/text/tokenizer_json.hpp"
#include "lacuna/framework/text/unicode.hpp"
#include "lacuna/framework/text/utf8.hpp"
#include "lacuna/framework/text/vocabulary.hpp"

namespace lacuna {
namespace {

constexpr std::string_view kSpecialBegin = "<|", kSpecialEnd = "|>";

bool is_special(std::string_view token) {
  return token.size() > kSpecialBegin.size() + kSpecialEnd.size() &&
         token.starts_with(kSpecialBegin) && token.ends_with(kSpecialEnd);
}

// How each byte is written in a vocabulary: those that print stand for themselves, the others for
// the code points from 256 on, in order.
std::array<char32_t, 256> byte_letters() {
  std::array<char32_t, 256> letters{};
  char32_t next = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool prints =
        (33 <= byte && byte <= 126) || (161 <= byte && byte <= 172) || (174 <= byte);
    letters[byte] = prints ? byte : next++;
  }
  return letters;
}

// The bytes that a token of the vocabulary stands for.
std::string bytes_of(std::string_view token, int64_t id, const std::array<char32_t, 256>& letters) {
  if (is_special(token)) return std::string(token);
  std::string bytes;
  for (size_t at = 0; at < token.size();) {
    const auto letter = std::ranges::find(letters, unicode::next(token, at));
    if (letter == letters.end()) {
      throw DataError(fmt::format(
          "vocabulary: the token '{}' (id {}) holds a character that stands for no byte",
          printable(token), id));
    }
    bytes += static_cast<char>(letter - letters.begin());
  }
  return bytes;
}

Vocabulary utf8_vocabulary(std::vector<std::string> tokens) {
  try {
    for (const std::string& token : tokens) require_utf8(token);
    return Vocabulary(std::move(tokens));
  } catch (const DataError& error) {
    throw DataError(std::string("vocabulary: ") + error.what());
  }
}

}  // namespace

struct BpeTokenizer::Model {
  Model(std::vector<std::string> tokens, std::vector<std::string> lines, int64_t first_line)
      : vocabulary(utf8_vocabulary(std::move(tokens))),
        merge_lines(std::move(lines)),
        merges(merge_lines, first_line, vocabulary) {
    const std::array<char32_t, 256> letters = byte_letters();
    for (size_t byte = 0; byte < letters.size(); ++byte) {
      std::string letter;
      unicode::append(letter, letters[byte]);
      byte_ids[byte] = vocabulary.find(letter).value_or(-1);
    }
    for (int64_t id = 0; id < vocabulary.size(); ++id) {
      const std::string& token = vocabulary.token(id);
      bytes.push_back(bytes_of(token, id, letters));
      if (is_special(token)) specials.push_back(id);
    }
    // So that the longest that fits is met first.
    std::ranges::sort(specials, [&](int64_t a, int64_t b) {
      return std::pair(-static_cast<int64_t>(vocabulary.token(a).size()), a) <
             std::pair(-static_cast<int64_t>(vocabulary.token(b).size()), b);
    });
  }

  // The special token that begins at `at`, or −1.
  int64_t special_at(std::string_view text, size_t at) const {
    for (const int64_t id : specials) {
      if (text.substr(at).starts_with(vocabulary.token(id))) return id;
    }
    return -1;
  }

  std::vector<int64_t> ids_of(std::string_view piece) const {
    std::vector<int64_t> ids;
    ids.reserve(piece.size());
    for (const char character : piece) {
      const auto byte = static_cast<uint8_t>(character);
      if (byte_ids[byte] < 0) {
        throw DataError(
            fmt::format("the vocabulary has no token for the byte {:#04x}, which is in '{}'", byte,
                        printable(piece)));
      }
      ids.push_back(byte_ids[byte]);
    }
    return merges.apply(std::move(ids));
  }

  Vocabulary vocabulary;
  std::vector<std::string> merge_lines;
  BpeMerges merges;
  std::array<int64_t, 256> byte_ids{};  // −1: no such token
  std::vector<std::string> bytes;       // by id
  std::vector<int64_t> specials;
};

BpeTokenizer::BpeTokenizer(std::vector<std::string> tokens, std::vector<std::string> merges,
                           int64_t first_line)
    : model_(std::make_unique<const Model>(std::move(tokens), std::move(merges), first_line)) {}

BpeTokenizer::BpeTokenizer(BpeTokenizer&&) noexcept = default;
BpeTokenizer::~BpeTokenizer() = default;

BpeTokenizer BpeTokenizer::from_files(std::string_view vocabulary, std::string_view merges) {
  std::vector<std::string> tokens;
  try {
    tokens = parse_vocabulary(vocabulary);
  } catch (const DataError& error) {
    throw DataError(std::string("vocabulary: ") + error.what());
  }
  MergeLines parsed = parse_merges(merges);
  return BpeTokenizer(std::move(tokens), std::move(parsed.lines), parsed.first_line);
}

std::vector<int64_t> BpeTokenizer::encode(std::string_view text) const {
  require_utf8(text);
  std::vector<int64_t> ids;
  std::unordered_map<std::string_view, std::vector<int64_t>> known;
  const auto add = [&](std::string_view plain) {
    for (const std::string_view piece : bpe_pieces(plain)) {
      const auto [entry, is_new] = known.try_emplace(piece);
      if (is_new) entry->second = model_->ids_of(piece);
      ids.insert(ids.end(), entry->second.begin(), entry->second.end());
    }
  };
  size_t begin = 0;
  for (size_t at = text.find(kSpecialBegin); at != std::string_view::npos;) {
    const int64_t special = model_->special_at(text, at);
    if (special >= 0) {
      add(text.substr(begin, at - begin));
      ids.push_back(special);
      begin = at + model_->vocabulary.token(special).size();
    }
    at = text.find(kSpecialBegin, special >= 0 ? begin : at + 1);
  }
  add(text.substr(begin));
  return ids;
}

std::string BpeTokenizer::decode(std::span<const int64_t> ids) const {
  require_ids(ids, vocabulary_size());
  std::string text;
  for (const int64_t id : ids) text += model_->bytes[static_cast<size_t>(id)];
  return text;
}

int64_t BpeTokenizer::vocabulary_size() const { return model_->vocabulary.size(); }
std::string BpeTokenizer::token(int64_t id) const { return model_->vocabulary.token(id); }
std::optional<int64_t> BpeTokenizer::find(std::string_view token) const {
  return model_->vocabulary.find(token);
}

std::string BpeTokenizer::to_json() const {
  return render_tokenizer(
      {.kind = "bpe", .tokens = model_->vocabulary.tokens(), .merges = model_->merge_lines});
}

}  // namespace lacuna
