// The keys of `data` that define how text becomes tokens, and which of them are hidden.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/changes/token_masking.h"
#include "lacuna/framework/text/tokenizer.h"
#include "lacuna/framework/text/word_tokenizer.hpp"

namespace lacuna {

/// Whether `cls` is a key of the data.
enum class ClsKey { Read, None };

/// Which tokenizer is asked for; and the tokenizer, where its vocabulary is given and not made of
/// the text.
struct TokenizerChoice {
  std::string kind;
  TokenizerPtr given;        ///< null for characters and words
  WordOptions words = {};    ///< for words
  bool has_unknown = false;  ///< for characters: whether there is an [UNK]
};

/// Reads `tokenizer` (characters | bytes | words | bpe | wordpiece) and the keys of that kind:
/// `unk` of characters (absent: false; new runs state true), `min_count`, `max_size`, `lower_case`,
/// `cls` of words, `vocab` and `merges` of bpe, `vocab` and `lower_case` of wordpiece. `mask` is a
/// token that `words` gets in addition, if it is not empty. *Errors:* ConfigError on values out of
/// range; DataError, with the paths, on files that make no vocabulary.
TokenizerChoice read_tokenizer(const Config& data, std::string_view fallback, ClsKey cls,
                               const std::string& mask = {});

/// The characters of a text, and an [UNK] where the choice has one.
TokenizerPtr character_vocabulary(const TokenizerChoice& choice, std::string_view text);

/// The bpe tokenizer of the files that `vocab` and `merges` name.
TokenizerPtr read_bpe(const Config& data);

/// Hidden tokens, as the configuration asks for them.
struct MaskKeys {
  double fraction = 0.0;
  std::string token;            ///< empty where an id is given
  std::optional<int64_t> id{};  ///< of tokens whose vocabulary is not known
};

/// What stands for a hidden token: a token that is given, or [MASK] for wordpiece and words; or, of
/// tokens that are numbers alone, `mask_id`.
enum class MaskOf { Tokenizer, Ids };

/// Reads `mask_fraction`, and `mask_token` or `mask_id`; nothing without the first. `kind` is the
/// tokenizer's. *Errors:* ConfigError on values out of range, and if nothing defines the
/// mask.
std::optional<MaskKeys> read_mask(const Config& data, std::string_view kind, MaskOf mask_of);

/// How tokens are hidden. The special tokens of the vocabulary ([PAD], [UNK], [CLS], [SEP], the
/// mask) never are. `tokenizer` may be null where an id is given. *Errors:* ConfigError where the
/// vocabulary has no such mask.
TokenMasking masking_of(const MaskKeys& keys, const Tokenizer* tokenizer, int64_t vocabulary_size,
                        const Config& data);

/// The tokenizer of the words that were counted. *Errors:* DataError where there are none;
/// ConfigError where it is `min_count` that leaves none.
TokenizerPtr words_of(const WordCounter& counter, const Config& data);

/// What is wrong with a text in which the mask stands: "the token '#' is in the text, …".
std::string mask_in_text(const MaskKeys& keys);

/// Returns make(); a DataError that it throws is given `where` ("file: ") to begin with.
template <class Make>
auto naming(const std::string& where, Make&& make) -> decltype(make()) {
  try {
    return make();
  } catch (const DataError& error) {
    throw DataError(where + ": " + error.what());
  }
}

}  // namespace lacuna
