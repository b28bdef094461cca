// WordPieceTokenizer: words in pieces of a given vocabulary, as BERT has it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/text/tokenizer.h"

namespace lacuna {

class Vocabulary;

/// Text is cleaned of control characters, cut at white space, and each punctuation character and
/// each ideograph becomes a word of its own. A word is cut into the longest token that begins it
/// and then, time and again, the longest that goes on, which the vocabulary writes with ## before
/// it; a word that leaves a rest, or has more than 100 characters, is [UNK]. [UNK], [CLS], [SEP],
/// [PAD] and [MASK] are kept whole wherever the text has them, where the vocabulary does.
///
/// In lower case, capitals of any script become small letters, one for one (Σ is always σ), and
/// accents are stripped: canonical decomposition of all of Unicode 14, Hangul included, but for CJK
/// compatibility ideographs; then marks (Mn) are left out.
///
/// encode() adds no [CLS] and [SEP]: labelled_text does, by encode_example.
/// *Source:* Devlin et al., arXiv:1810.04805; Wu et al., arXiv:1609.08144.
class WordPieceTokenizer final : public Tokenizer {
 public:
  static constexpr int64_t kMostCharacters = 100;  ///< in a word that is not [UNK]

  /// From the text of `vocab.txt`: a token a line, its id the number of the line from 0.
  /// *Errors:* DataError, with the line, on a token that is empty or there twice, on text that is
  /// not UTF-8, and without [UNK].
  static WordPieceTokenizer from_file(std::string_view vocabulary, bool lower_case);
  /// From tokens by id. *Errors:* as from_file.
  WordPieceTokenizer(std::vector<std::string> tokens, bool lower_case);
  WordPieceTokenizer(WordPieceTokenizer&&) noexcept;
  ~WordPieceTokenizer() override;

  std::string_view kind() const override { return "wordpiece"; }
  std::vector<int64_t> encode(std::string_view text) const override;
  /// Tokens joined by spaces, but for those with ##.
  std::string decode(std::span<const int64_t> ids) const override;
  int64_t vocabulary_size() const override;
  std::string token(int64_t id) const override;
  std::optional<int64_t> find(std::string_view token) const override;
  std::string to_json() const override;

 private:
  void add_words(std::string_view text, std::vector<int64_t>& ids) const;
  void add_pieces(std::string_view word, std::vector<int64_t>& ids) const;

  std::unique_ptr<const Vocabulary> vocabulary_;
  std::vector<int64_t> specials_;
  int64_t unknown_ = 0;
  bool lower_case_;
};

}  // namespace lacuna
