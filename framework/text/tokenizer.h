// Tokenizer: text becomes ids of tokens, and these become text again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// A vocabulary, and how text is cut into its tokens. It never changes, and any thread may use it.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// `characters`, `bytes`, `words`, `bpe` or `wordpiece`.
  virtual std::string_view kind() const = 0;
  /// The text's tokens, each in [0, vocabulary_size()).
  /// *Errors:* DataError, with the place in the text, when it is not UTF-8 (bytes takes any) or
  /// holds what the vocabulary has no token for and no [UNK] stands in for.
  /// *Cost:* 8 bytes per token, and what the kind documents.
  virtual std::vector<int64_t> encode(std::string_view text) const = 0;
  /// The text of tokens. It is the very text that was encoded for bytes, characters and bpe; for
  /// the others white space, case and what [UNK] stands for are lost.
  /// *Errors:* DataError on an id outside of the vocabulary, with its index.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;
  virtual int64_t vocabulary_size() const = 0;
  /// A token as the vocabulary has it. *Errors:* DataError on an id outside of it.
  virtual std::string token(int64_t id) const = 0;
  /// The id of a token as the vocabulary has it, if it does.
  virtual std::optional<int64_t> find(std::string_view token) const = 0;
  /// All of it as JSON, for tokenizer_from_json: a run keeps its vocabulary so.
  virtual std::string to_json() const = 0;
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

/// The tokenizer that `to_json` wrote. *Errors:* DataError when the text is no such JSON, or of a
/// tokenizer that cannot be.
TokenizerPtr tokenizer_from_json(std::string_view json);

/// *Errors:* DataError "id 70 at index 3 is outside of the vocabulary's [0, 65)".
void require_ids(std::span<const int64_t> ids, int64_t vocabulary_size);

}  // namespace lacuna
