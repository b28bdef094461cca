// WordTokenizer: what stands between white space is a token. WordCounter: makes its vocabulary.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/text/tokenizer.h"

namespace lacuna {

class Vocabulary;

/// How text is split into words, and which words get an id.
struct WordOptions {
  /// Words in small letters, of any script. Default true.
  bool lower_case = true;
  /// A word that is counted less often is [UNK]. Default 1: none is left out for that.
  int64_t min_count = 1;
  /// Most ids in the vocabulary, [PAD], [UNK], [CLS], [SEP] and mask among them. Default 0: no
  /// bound.
  int64_t max_size = 0;
  /// Whether the vocabulary has a [CLS], which stands before every example. Default no.
  bool cls = false;
  /// Whether the vocabulary has a [SEP], which stands between two sentences and after the last.
  /// Default no.
  bool sep = false;
  /// A token that stands for words that are hidden. Default: none.
  std::string mask = {};
};

/// Words between white space (Unicode's), punctuation part of them. [PAD] is 0 and [UNK] 1, then
/// come [CLS], [SEP] and a mask where there are such, then words. Decoding joins words by a space.
class WordTokenizer final : public Tokenizer {
 public:
  static constexpr const char* kPad = "[PAD]";
  static constexpr const char* kUnknown = "[UNK]";
  static constexpr const char* kCls = "[CLS]";
  static constexpr const char* kSep = "[SEP]";

  /// *Errors:* DataError on a token that is there twice or empty, or unless it begins with [PAD],
  /// [UNK].
  WordTokenizer(std::vector<std::string> tokens, bool lower_case);
  ~WordTokenizer() override;

  std::string_view kind() const override { return "words"; }
  std::vector<int64_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  int64_t vocabulary_size() const override;
  std::string token(int64_t id) const override;
  std::optional<int64_t> find(std::string_view token) const override;
  std::string to_json() const override;

 private:
  std::unique_ptr<const Vocabulary> vocabulary_;
  bool lower_case_;
};

/// Counts the words of text after text.
class WordCounter {
 public:
  explicit WordCounter(WordOptions options);
  ~WordCounter();

  /// Counts the first `most` words of a text. *Errors:* DataError when it is not UTF-8.
  void add(std::string_view text, int64_t most = std::numeric_limits<int64_t>::max());
  /// The words that were counted at least `min_count` times, the most frequent first, and those
  /// of one frequency in the order of their bytes, as many as `max_size` leaves room for.
  /// *Errors:* DataError when no word is frequent enough, or has room.
  std::shared_ptr<const WordTokenizer> make() const;

 private:
  struct Counts;
  WordOptions options_;
  std::unique_ptr<Counts> counts_;
};

/// Words in a text. *Errors:* DataError when it is not UTF-8.
int64_t count_words(std::string_view text);

}  // namespace lacuna
