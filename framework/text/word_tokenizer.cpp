#include "lacuna/framework/text/word_tokenizer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/text/tokenizer_json.hpp"
#include "lacuna/framework/text/unicode.hpp"
#include "lacuna/framework/text/utf8.hpp"
#include "lacuna/framework/text/vocabulary.hpp"

namespace lacuna {
namespace {

constexpr int64_t kUnknownId = 1;

// Calls visit(word) with the words of a text, in small letters or as they stand, until it returns
// false.
template <class Visit>
void for_each_word(std::string_view text, bool lower_case, Visit&& visit) {
  require_utf8(text);
  std::string word;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t code = unicode::next(text, at);
    if (!unicode::is_space(code)) {
      if (lower_case) {
        unicode::append(word, unicode::lower(code));
      } else {
        word += text.substr(begin, at - begin);
      }
    } else if (!word.empty()) {
      if (!visit(word)) return;
      word.clear();
    }
  }
  if (!word.empty()) visit(word);
}

}  // namespace

WordTokenizer::WordTokenizer(std::vector<std::string> tokens, bool lower_case)
    : vocabulary_(std::make_unique<const Vocabulary>(std::move(tokens))), lower_case_(lower_case) {
  for (const std::string& token : vocabulary_->tokens()) require_utf8(token);
  const std::vector<std::string>& own = vocabulary_->tokens();
  if (own.size() < 2 || own[0] != kPad || own[1] != kUnknown) {
    throw DataError(fmt::format("a vocabulary of words begins with {} and {}", kPad, kUnknown));
  }
}

WordTokenizer::~WordTokenizer() = default;

std::vector<int64_t> WordTokenizer::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  for_each_word(text, lower_case_, [&](const std::string& word) {
    ids.push_back(vocabulary_->find(word).value_or(kUnknownId));
    return true;
  });
  return ids;
}

std::string WordTokenizer::decode(std::span<const int64_t> ids) const {
  require_ids(ids, vocabulary_size());
  std::string text;
  for (const int64_t id : ids) text += (text.empty() ? "" : " ") + vocabulary_->token(id);
  return text;
}

int64_t WordTokenizer::vocabulary_size() const { return vocabulary_->size(); }
std::string WordTokenizer::token(int64_t id) const { return vocabulary_->token(id); }
std::optional<int64_t> WordTokenizer::find(std::string_view token) const {
  return vocabulary_->find(token);
}

std::string WordTokenizer::to_json() const {
  return render_tokenizer(
      {.kind = "words", .tokens = vocabulary_->tokens(), .flags = {{"lower_case", lower_case_}}});
}

struct WordCounter::Counts {
  std::unordered_map<std::string, int64_t> of;
};

WordCounter::WordCounter(WordOptions options)
    : options_(std::move(options)), counts_(std::make_unique<Counts>()) {}

WordCounter::~WordCounter() = default;

void WordCounter::add(std::string_view text, int64_t most) {
  if (most <= 0) return;
  for_each_word(text, options_.lower_case, [&](const std::string& word) {
    ++counts_->of[word];
    return --most > 0;
  });
}

std::shared_ptr<const WordTokenizer> WordCounter::make() const {
  std::vector<std::string> tokens = {WordTokenizer::kPad, WordTokenizer::kUnknown};
  if (options_.cls) tokens.emplace_back(WordTokenizer::kCls);
  if (options_.sep) tokens.emplace_back(WordTokenizer::kSep);
  if (!options_.mask.empty()) tokens.push_back(options_.mask);
  std::vector<std::pair<int64_t, std::string>> frequent;
  for (const auto& [word, count] : counts_->of) {
    // A text may name the special tokens, which are no words of it.
    const bool is_special = std::ranges::find(tokens, word) != tokens.end();
    if (count >= options_.min_count && !is_special) frequent.emplace_back(-count, word);
  }
  if (frequent.empty()) {
    throw DataError(fmt::format("no word occurs {} time{} or more, so the vocabulary is empty",
                                options_.min_count, options_.min_count == 1 ? "" : "s"));
  }
  if (options_.max_size > 0 && static_cast<int64_t>(tokens.size()) >= options_.max_size) {
    throw DataError(fmt::format("max_size {} leaves no room for a word next to {}",
                                options_.max_size, join(tokens, ", ")));
  }
  std::ranges::sort(frequent);
  for (auto& [count, word] : frequent) {
    if (options_.max_size > 0 && static_cast<int64_t>(tokens.size()) >= options_.max_size) break;
    tokens.push_back(std::move(word));
  }
  return std::make_shared<const WordTokenizer>(std::move(tokens), options_.lower_case);
}

int64_t count_words(std::string_view text) {
  int64_t count = 0;
  for_each_word(text, false, [&](const std::string&) { return ++count > 0; });
  return count;
}

}  // namespace lacuna
