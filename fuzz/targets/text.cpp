// Text through every tokenizer and back. The first part of the input (up to a byte 0xFF) is what
// vocabularies are made of, the second what is encoded; it is also an array of ids.
#include "lacuna/framework/text/bpe_tokenizer.hpp"
#include "lacuna/framework/text/byte_tokenizer.hpp"
#include "lacuna/framework/text/character_tokenizer.hpp"
#include "lacuna/framework/text/text_length.hpp"
#include "lacuna/framework/text/word_tokenizer.hpp"
#include "lacuna/framework/text/wordpiece_tokenizer.hpp"
#include "lacuna/fuzz/input.h"

using namespace lacuna;
using fuzz::answer;

namespace {

enum class Back { Same, Changed };

void encode_and_decode(const Tokenizer& tokenizer, std::string_view text, Back back) {
  answer([&] {
    const std::vector<int64_t> ids = tokenizer.encode(text);
    require_ids(ids, tokenizer.vocabulary_size());
    const std::string decoded = tokenizer.decode(ids);
    if (back == Back::Same) fuzz::require(decoded == text, "it is decoded to another text");
  });
  answer([&] {
    std::vector<int64_t> ids;
    for (const char byte : text) ids.push_back(static_cast<signed char>(byte));
    tokenizer.decode(ids);
  });
}

// GPT-2's letters for the bytes of ASCII, and a few merges.
const BpeTokenizer& small_bpe() {
  static const BpeTokenizer tokenizer = [] {
    std::vector<std::string> tokens;
    for (char c = '!'; c <= '~'; ++c) tokens.emplace_back(1, c);
    tokens.insert(tokens.end(), {"\xC4\xA0", "\xC4\x8A", "th", "the", "\xC4\xA0the", "in", "ing"});
    return BpeTokenizer(tokens, {"t h", "th e", "\xC4\xA0 the", "i n", "in g"});
  }();
  return tokenizer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 2);
  encode_and_decode(ByteTokenizer(), parts[1], Back::Same);
  encode_and_decode(small_bpe(), parts[1], Back::Same);
  answer([&] { encode_and_decode(CharacterTokenizer::of(parts[0]), parts[1], Back::Same); });
  answer([&] {
    WordCounter counter({.cls = true, .mask = "[MASK]"});
    counter.add(parts[0]);
    encode_and_decode(*counter.make(), parts[1], Back::Changed);
  });
  static const WordPieceTokenizer pieces = WordPieceTokenizer::from_file(
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nlow\n##er\n##est\na\n##a\n\xC3\xA9\n,\n", true);
  encode_and_decode(pieces, parts[1], Back::Changed);
  answer([&] { count_characters(parts[1]); });
  return 0;
}
