#include "lacuna/framework/text/wordpiece_tokenizer.hpp"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/text/tokenizer_json.hpp"
#include "lacuna/framework/text/unicode.hpp"
#include "lacuna/framework/text/utf8.hpp"
#include "lacuna/framework/text/vocabulary.hpp"

namespace lacuna {
namespace {

constexpr const char* kUnknown = "[UNK]";
constexpr const char* kContinued = "##";

bool is_white(char32_t code) {
  return code == '\t' || code == '\n' || code == '\r' ||
         (!unicode::is_control(code) && unicode::is_space(code));
}

bool is_dropped(char32_t code) {
  return code == 0xFFFD || (unicode::is_control(code) && !is_white(code));
}

// BERT counts all of ASCII's signs as punctuation, $, + and ` too.
bool stands_alone(char32_t code) {
  if (code < 0x80)
    return code > ' ' && code < 127 && !unicode::is_letter(code) && !unicode::is_number(code);
  return unicode::is_punctuation(code);
}

// The words of a text, in the form in which the vocabulary has them.
std::vector<std::string> words_of(std::string_view text, bool lower_case) {
  std::vector<std::string> words;
  std::string word, form;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  for (size_t at = 0; at < text.size();) {
    const char32_t code = unicode::next(text, at);
    if (is_dropped(code)) continue;
    if (is_white(code)) {
      end_word();
      continue;
    }
    const bool is_ideograph = unicode::is_cjk(code);
    if (is_ideograph) end_word();
    form.clear();
    if (lower_case) {
      unicode::append_without_accents(form, unicode::lower(code));
    } else {
      unicode::append(form, code);
    }
    for (size_t i = 0; i < form.size();) {
      const size_t begin = i;
      const bool is_alone = stands_alone(unicode::next(form, i));
      if (is_alone) end_word();
      word += form.substr(begin, i - begin);
      if (is_alone) end_word();
    }
    if (is_ideograph) end_word();
  }
  end_word();
  return words;
}

int64_t characters_in(std::string_view word) {
  int64_t count = 0;
  for (size_t at = 0; at < word.size(); ++count) unicode::next(word, at);
  return count;
}

bool is_continuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

}  // namespace

WordPieceTokenizer::WordPieceTokenizer(std::vector<std::string> tokens, bool lower_case)
    : vocabulary_(std::make_unique<const Vocabulary>(
          std::move(tokens), [](size_t id) { return fmt::format("line {}", id + 1); })),
      lower_case_(lower_case) {
  for (int64_t id = 0; id < vocabulary_->size(); ++id) {
    const std::string& token = vocabulary_->token(id);
    const size_t at = utf8_bytes(token);
    if (at == token.size()) continue;
    throw DataError(fmt::format(
        "line {}: byte {} of the line, {:#04x}, is not UTF-8; convert the vocabulary to UTF-8",
        id + 1, at + 1, static_cast<uint8_t>(token[at])));
  }
  for (const char* special : {kUnknown, "[CLS]", "[SEP]", "[PAD]", "[MASK]"}) {
    if (const auto id = vocabulary_->find(special)) specials_.push_back(*id);
  }
  const auto unknown = vocabulary_->find(kUnknown);
  if (!unknown) {
    throw DataError(
        "the vocabulary has no token [UNK]; expected a vocab.txt as BERT has, with one token per "
        "line");
  }
  unknown_ = *unknown;
}

WordPieceTokenizer::WordPieceTokenizer(WordPieceTokenizer&&) noexcept = default;
WordPieceTokenizer::~WordPieceTokenizer() = default;

WordPieceTokenizer WordPieceTokenizer::from_file(std::string_view vocabulary, bool lower_case) {
  std::vector<std::string> tokens;
  while (!vocabulary.empty()) {
    const size_t end = vocabulary.find('\n');
    std::string_view line = vocabulary.substr(0, end);
    vocabulary.remove_prefix(end == std::string_view::npos ? vocabulary.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    tokens.emplace_back(line);
  }
  while (!tokens.empty() && tokens.back().empty()) tokens.pop_back();
  return WordPieceTokenizer(std::move(tokens), lower_case);
}

std::vector<int64_t> WordPieceTokenizer::encode(std::string_view text) const {
  require_utf8(text);
  std::vector<int64_t> ids;
  size_t begin = 0;
  for (size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at)) {
    const size_t bracket = at++;
    for (const int64_t special : specials_) {
      const std::string& token = vocabulary_->token(special);
      if (!text.substr(bracket).starts_with(token)) continue;
      add_words(text.substr(begin, bracket - begin), ids);
      ids.push_back(special);
      begin = at = bracket + token.size();
      break;
    }
  }
  add_words(text.substr(begin), ids);
  return ids;
}

void WordPieceTokenizer::add_words(std::string_view text, std::vector<int64_t>& ids) const {
  for (const std::string& word : words_of(text, lower_case_)) add_pieces(word, ids);
}

void WordPieceTokenizer::add_pieces(std::string_view word, std::vector<int64_t>& ids) const {
  const size_t before = ids.size();
  const auto give_up = [&] {
    ids.resize(before);
    ids.push_back(unknown_);
  };
  if (characters_in(word) > kMostCharacters) return give_up();
  std::string piece;
  for (size_t at = 0; at < word.size();) {
    const std::string prefix = at == 0 ? "" : kContinued;
    piece = prefix + std::string(word.substr(at));
    std::optional<int64_t> id = vocabulary_->find(piece);
    while (!id) {
      while (is_continuation(piece.back())) piece.pop_back();
      piece.pop_back();
      if (piece.size() == prefix.size()) return give_up();
      id = vocabulary_->find(piece);
    }
    ids.push_back(*id);
    at += piece.size() - prefix.size();
  }
}

std::string WordPieceTokenizer::decode(std::span<const int64_t> ids) const {
  require_ids(ids, vocabulary_size());
  std::string text;
  for (const int64_t id : ids) {
    const std::string& token = vocabulary_->token(id);
    if (token.starts_with(kContinued) && !text.empty()) {
      text += token.substr(2);
    } else {
      text += (text.empty() ? "" : " ") + token;
    }
  }
  return text;
}

int64_t WordPieceTokenizer::vocabulary_size() const { return vocabulary_->size(); }
std::string WordPieceTokenizer::token(int64_t id) const { return vocabulary_->token(id); }
std::optional<int64_t> WordPieceTokenizer::find(std::string_view token) const {
  return vocabulary_->find(token);
}

std::string WordPieceTokenizer::to_json() const {
  return render_tokenizer({.kind = "wordpiece",
                           .tokens = vocabulary_->tokens(),
                           .flags = {{"lower_case", lower_case_}}});
}

}  // namespace lacuna
