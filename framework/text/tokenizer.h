// Tokenizer: converts text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// A vocabulary, and the rules that cut text into its tokens. Immutable; any thread may use it.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// `characters`, `bytes`, `words`, `bpe` or `wordpiece`.
  virtual std::string_view kind() const = 0;
  /// The text's tokens, each in [0, vocabulary_size()). *Errors:* DataError, with the position in
  /// the text, if it is not UTF-8 (`bytes` accepts any bytes), or if the vocabulary has neither a
  /// token for a part of it nor an [UNK]. *Cost:* 8 bytes per token, and the cost that each kind
  /// documents.
  virtual std::vector<int64_t> encode(std::string_view text) const = 0;
  /// The text of tokens. For bytes, characters and bpe it equals the encoded text; for the others,
  /// white space, case and unknown parts ([UNK]) are lost. *Errors:* DataError on an id outside the
  /// vocabulary, with its index.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;
  virtual int64_t vocabulary_size() const = 0;
  /// A token as in the vocabulary. *Errors:* DataError on an id outside it.
  virtual std::string token(int64_t id) const = 0;
  /// The id of a token, if the vocabulary has it.
  virtual std::optional<int64_t> find(std::string_view token) const = 0;
  /// The tokenizer as JSON, for tokenizer_from_json: runs save their vocabulary in this form.
  virtual std::string to_json() const = 0;
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

/// The tokenizer that `to_json` wrote. *Errors:* DataError if the text is not such JSON, or
/// describes an invalid tokenizer.
TokenizerPtr tokenizer_from_json(std::string_view json);

/// *Errors:* DataError "id 70 at index 3 is outside of the vocabulary's [0, 65)".
void require_ids(std::span<const int64_t> ids, int64_t vocabulary_size);

}  // namespace lacuna
