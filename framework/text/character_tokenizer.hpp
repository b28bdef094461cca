// CharacterTokenizer: every code point of a text is a token.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/text/tokenizer.h"

namespace lacuna {

/// The code points that occur in a text, each a token, in ascending order, and behind them [UNK],
/// which stands for all others; without it one that does not occur in the text is an error wherever
/// it is met.
class CharacterTokenizer final : public Tokenizer {
 public:
  static constexpr const char* kUnknown = "[UNK]";
  /// Whether there is an [UNK]. Vocabularies of earlier versions have none.
  enum class Unknown { Refused, Token };

  /// Of the code points of `text`. *Errors:* DataError when it is not UTF-8, or empty.
  static CharacterTokenizer of(std::string_view text, Unknown unknown = Unknown::Refused);
  /// *Errors:* DataError unless each token is one code point, and they ascend.
  explicit CharacterTokenizer(const std::vector<std::string>& tokens,
                              Unknown unknown = Unknown::Refused);

  std::string_view kind() const override { return "characters"; }
  std::vector<int64_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  int64_t vocabulary_size() const override {
    return characters() + (unknown_ == Unknown::Token ? 1 : 0);
  }
  std::string token(int64_t id) const override;
  std::optional<int64_t> find(std::string_view token) const override;
  std::string to_json() const override;

 private:
  struct CodePoints {
    std::vector<char32_t> ascending;
  };
  CharacterTokenizer(CodePoints characters, Unknown unknown);
  int64_t characters() const { return static_cast<int64_t>(characters_.size()); }
  int64_t id_of(char32_t character) const;  // −1: none

  std::vector<char32_t> characters_;
  Unknown unknown_ = Unknown::Refused;
  std::vector<int32_t> ascii_ids_;  // of the first 128 code points, −1 if there is none
};

}  // namespace lacuna
