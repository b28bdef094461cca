#include "lacuna/framework/text/tokenizer.h"

#include <fmt/core.h>

#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/text/bpe_tokenizer.hpp"
#include "lacuna/framework/text/byte_tokenizer.hpp"
#include "lacuna/framework/text/character_tokenizer.hpp"
#include "lacuna/framework/text/tokenizer_json.hpp"
#include "lacuna/framework/text/word_tokenizer.hpp"
#include "lacuna/framework/text/wordpiece_tokenizer.hpp"

namespace lacuna {

TokenizerPtr tokenizer_from_json(std::string_view json) {
  TokenizerParts parts = parse_tokenizer(json);
  if (parts.kind == "bytes") return std::make_shared<const ByteTokenizer>();
  if (parts.kind == "characters") {
    const bool has_unknown = parts.flags.contains("unk") && parts.flag("unk");
    return std::make_shared<const CharacterTokenizer>(
        parts.tokens,
        has_unknown ? CharacterTokenizer::Unknown::Token : CharacterTokenizer::Unknown::Refused);
  }
  if (parts.kind == "words") {
    return std::make_shared<const WordTokenizer>(std::move(parts.tokens), parts.flag("lower_case"));
  }
  if (parts.kind == "wordpiece") {
    return std::make_shared<const WordPieceTokenizer>(std::move(parts.tokens),
                                                      parts.flag("lower_case"));
  }
  if (parts.kind == "bpe") {
    return std::make_shared<const BpeTokenizer>(std::move(parts.tokens), std::move(parts.merges));
  }
  throw DataError(fmt::format(
      "unknown kind of tokenizer '{}'; valid names: bpe, bytes, characters, words, wordpiece",
      printable(parts.kind)));
}

void require_ids(std::span<const int64_t> ids, int64_t vocabulary_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocabulary_size) {
      throw DataError(fmt::format("id {} at index {} is outside of the vocabulary's [0, {})",
                                  ids[i], i, vocabulary_size));
    }
  }
}

}  // namespace lacuna
