// The keys of `data` that say how text becomes tokens.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lacuna/framework/core/config.h"
#include "lacuna/framework/text/tokenizer.h"
#include "lacuna/framework/text/word_tokenizer.h"

namespace lacuna {

/// Whether `cls` is a key of the data.
enum class ClsKey { Read, None };

/// Which tokenizer is asked for; and the tokenizer, where its vocabulary is given and not made of
/// the text.
struct TokenizerChoice {
  std::string kind;
  TokenizerPtr given;      ///< null for characters and words
  WordOptions words = {};  ///< for words
};

/// Reads `tokenizer` (characters | bytes | words | bpe | wordpiece) and the keys of that kind:
/// `min_count`, `max_size`, `lower_case`, `cls` of words, `vocab` and `merges` of bpe, `vocab` and
/// `lower_case` of wordpiece. `mask` is a token that `words` gets besides, if it is not empty.
/// *Errors:* ConfigError on values out of range; DataError, with the paths, on files that make no
/// vocabulary.
TokenizerChoice read_tokenizer(const Config& data, std::string_view fallback, ClsKey cls,
                               const std::string& mask = {});

/// The bpe tokenizer of the files that `vocab` and `merges` name.
TokenizerPtr read_bpe(const Config& data);

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
