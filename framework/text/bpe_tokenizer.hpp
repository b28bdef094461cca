// BpeTokenizer: byte pair encoding over bytes, as GPT-2 has it.
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

/// Text is cut into contractions, letters, numbers and other characters, each with the space before
/// it, and white space (GPT-2's pattern); the bytes of a piece, written as printable characters,
/// are merged pair by pair, the pair of the lowest rank first and of equal ones the leftmost, until
/// no merge applies. A token `<|…|>` of the vocabulary is special: it is kept whole wherever the
/// text has it. *Source:* Radford et al., "Language Models are Unsupervised Multitask Learners",
/// 2019; Sennrich et al., arXiv:1508.07909.
///
/// *Cost:* O(n log n) for a piece of n bytes, once for each piece that differs.
class BpeTokenizer final : public Tokenizer {
 public:
  /// From the text of `vocab.json` (a token's id by the token) and of `merges.txt` (a pair a line,
  /// the first rank first; a first line that begins with "#version" is passed over).
  /// *Errors:* DataError "vocabulary: …" when it is no such JSON, has ids that are there twice or
  /// leave a hole, or a token that stands for no bytes; "merges, line 7: …" when a line is not two
  /// tokens, or one of them, or what they merge to, is not in the vocabulary, or the pair was there
  /// before.
  static BpeTokenizer from_files(std::string_view vocabulary, std::string_view merges);
  /// From tokens by id and merges by rank ("a b"). *Errors:* as from_files; a merge's line is
  /// its rank and `first_line`.
  BpeTokenizer(std::vector<std::string> tokens, std::vector<std::string> merges,
               int64_t first_line = 1);
  BpeTokenizer(BpeTokenizer&&) noexcept;
  ~BpeTokenizer() override;

  std::string_view kind() const override { return "bpe"; }
  /// *Errors:* DataError also on a byte that the vocabulary has no token for.
  std::vector<int64_t> encode(std::string_view text) const override;
  /// The tokens' bytes, which need not be UTF-8 where a character is cut off.
  std::string decode(std::span<const int64_t> ids) const override;
  int64_t vocabulary_size() const override;
  std::string token(int64_t id) const override;
  std::optional<int64_t> find(std::string_view token) const override;
  std::string to_json() const override;

 private:
  struct Model;
  std::unique_ptr<const Model> model_;
};

}  // namespace lacuna
