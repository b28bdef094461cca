#include "lacuna/framework/text/tokenizer.h"

#include <gmock/gmock.h>

#include "framework/text/bpe_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/text/bpe_tokenizer.hpp"
#include "lacuna/framework/text/byte_tokenizer.hpp"
#include "lacuna/framework/text/character_tokenizer.hpp"
#include "lacuna/framework/text/word_tokenizer.hpp"
#include "lacuna/framework/text/wordpiece_tokenizer.hpp"
#include "throws.h"

namespace lacuna::tokenizer_test {
namespace {

std::vector<TokenizerPtr> one_of_each_kind() {
  WordCounter counter({.cls = true});
  counter.add("The low \"cat\" sat \u00e9");
  return {std::make_shared<const ByteTokenizer>(),
          std::make_shared<const CharacterTokenizer>(
              CharacterTokenizer::of(std::string_view("The low \"cat\"\0\n\\s\u00e9", 19))),
          counter.make(),
          std::make_shared<const BpeTokenizer>(small_bpe_tokens({"lo", "low"}),
                                               std::vector<std::string>{"l o", "lo w"}),
          std::make_shared<const WordPieceTokenizer>(
              WordPieceTokenizer::from_file("[UNK]\nthe\nThe\nlow\n##w\n", false))};
}

TEST(Tokenizer, ComesBackFromJson) {
  for (const TokenizerPtr& tokenizer : one_of_each_kind()) {
    const std::string json = tokenizer->to_json();
    const TokenizerPtr read = tokenizer_from_json(json);
    EXPECT_EQ(read->kind(), tokenizer->kind());
    ASSERT_EQ(read->vocabulary_size(), tokenizer->vocabulary_size());
    for (int64_t id = 0; id < read->vocabulary_size(); ++id) {
      EXPECT_EQ(read->token(id), tokenizer->token(id));
      EXPECT_EQ(read->find(read->token(id)), id);
    }
    EXPECT_EQ(read->encode("The low \"cat\""), tokenizer->encode("The low \"cat\""));
    EXPECT_EQ(read->to_json(), json);
    EXPECT_EQ(json.find('\0'), std::string::npos);  // so that a checkpoint holds it
  }
}

TEST(Tokenizer, KeepsWhetherItIsOfLowerCase) {
  const auto lower = WordPieceTokenizer::from_file("[UNK]\nthe\n", true);
  EXPECT_EQ(tokenizer_from_json(lower.to_json())->encode("THE"), std::vector<int64_t>{1});
  const WordTokenizer upper({"[PAD]", "[UNK]", "the"}, false);
  EXPECT_EQ(tokenizer_from_json(upper.to_json())->encode("THE the"), (std::vector<int64_t>{1, 2}));
}

TEST(Tokenizer, RefusesJsonOfNoTokenizer) {
  const auto read = [](const char* json) { tokenizer_from_json(json); };
  expect_throws<DataError>([&] { read(R"({"tokenizer": "letters"})"); },
                           "unknown kind of tokenizer 'letters'; valid names: bpe, bytes");
  expect_throws<DataError>([&] { read(R"({"tokens": ["a"]})"); }, "'tokenizer'");
  expect_throws<DataError>([&] { read(R"({"tokenizer": "characters"})"); }, "without characters");
  expect_throws<DataError>([&] { read(R"({"tokenizer": "words", "tokens": ["[PAD]", "[UNK]"]})"); },
                           "a tokenizer of the kind 'words' needs 'lower_case'");
  expect_throws<DataError>([&] { read(R"({"tokenizer": "bytes", "tokenizer": "bytes"})"); },
                           "'tokenizer' appears twice");
  expect_throws<DataError>([&] { read(R"({"tokenizer": 3})"); }, "'tokenizer' is not a part of");
  expect_throws<DataError>([&] { read(R"({"tokenizer": "bytes", "tokens": [["a"]]})"); },
                           "in the list 'tokens': expected text, found a list");
  expect_throws<DataError>([&] { read(R"({"tokenizer": "bytes", "tokens": [1]})"); },
                           "in the list 'tokens': expected text, found the number 1");
  expect_throws<DataError>([&] { read(R"({"tokenizer": null})"); }, "found null");
  expect_throws<DataError>([&] { read("\xEF\xBB\xBF{}"); }, "it does not begin with '{'");
  expect_throws<DataError>(
      [&] { tokenizer_from_json(std::string_view("{\"tokenizer\": \"bytes\"}\0", 23)); },
      "there is a zero byte in it");
}

}  // namespace
}  // namespace lacuna::tokenizer_test
