#include "lacuna/framework/text/character_tokenizer.hpp"

#include <gmock/gmock.h>

#include "framework/text/random_text.h"
#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::character_tokenizer_test {
namespace {

using ::testing::ElementsAre;

TEST(CharacterTokenizer, OrdersCharactersByCodePoint) {
  const auto tokenizer = CharacterTokenizer::of("ba\u4e2d\na\u00e9");
  EXPECT_EQ(tokenizer.vocabulary_size(), 5);
  EXPECT_THAT(tokenizer.encode("\nab\u00e9\u4e2d"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(tokenizer.token(3), "\u00e9");
  EXPECT_EQ(tokenizer.find("\u4e2d"), 4);
  EXPECT_EQ(tokenizer.find("c"), std::nullopt);
  EXPECT_EQ(tokenizer.find("ab"), std::nullopt);
  EXPECT_EQ(tokenizer.find(""), std::nullopt);
}

TEST(CharacterTokenizer, GivesBackTheText) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::string text = random_text(seed, 300);
    const auto tokenizer = CharacterTokenizer::of(text);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(CharacterTokenizer, SaysWhichCharacterIsNotKnown) {
  const auto tokenizer = CharacterTokenizer::of("ab\n");
  expect_throws<DataError>(
      [&] { tokenizer.encode("ab\na\u00e9"); },
      "byte 4 (line 2): the character '\u00e9' (U+00E9) is not in the vocabulary of 3 characters");
  expect_throws<DataError>([&] { tokenizer.encode("abc"); }, "'c' (U+0063)");
}

TEST(CharacterTokenizer, RefusesWhatIsNoVocabulary) {
  expect_throws<DataError>([] { CharacterTokenizer::of(""); }, "without characters");
  expect_throws<DataError>([] { CharacterTokenizer::of("a\xFF"); }, "byte 1 (line 1)");
  expect_throws<DataError>(
      [] {
        CharacterTokenizer(std::vector<std::string>{"a", "bc"});
      },
      "the token 'bc' is not one character");
  expect_throws<DataError>(
      [] {
        CharacterTokenizer(std::vector<std::string>{"a", ""});
      },
      "is not one character");
  expect_throws<DataError>(
      [] {
        CharacterTokenizer(std::vector<std::string>{"b", "a"});
      },
      "the character 'a' is out of order");
  expect_throws<DataError>(
      [] {
        CharacterTokenizer(std::vector<std::string>{"b", "b"});
      },
      "is out of order");
}

TEST(CharacterTokenizer, HasAnUnknownBehindItsCharacters) {
  using enum CharacterTokenizer::Unknown;
  const auto tokenizer = CharacterTokenizer::of("ba\n", Token);
  EXPECT_EQ(tokenizer.vocabulary_size(), 4);
  EXPECT_THAT(tokenizer.encode("ab\u4e2d\nc"), ElementsAre(1, 2, 3, 0, 3));
  EXPECT_EQ(tokenizer.find("[UNK]"), 3);
  EXPECT_EQ(tokenizer.token(3), "[UNK]");
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{1, 3, 2}), "a[UNK]b");
  EXPECT_THAT(CharacterTokenizer::of("[UNK]", Token).encode("[UNK]"), ElementsAre(3, 2, 1, 0, 4))
      << "the text's own brackets are characters";
  const TokenizerPtr again = tokenizer_from_json(tokenizer.to_json());
  EXPECT_EQ(again->vocabulary_size(), 4);
  EXPECT_EQ(again->to_json(), tokenizer.to_json());
  EXPECT_THAT(again->encode("z"), ElementsAre(3));
}

// What earlier versions wrote.
TEST(CharacterTokenizer, HasNoneInVocabulariesWithoutTheFlag) {
  const TokenizerPtr old = tokenizer_from_json(R"({"tokenizer":"characters","tokens":["a","b"]})");
  EXPECT_EQ(old->vocabulary_size(), 2);
  EXPECT_EQ(old->find("[UNK]"), std::nullopt);
  EXPECT_EQ(old->to_json(), R"({"tokenizer":"characters","tokens":["a","b"]})");
  EXPECT_EQ(CharacterTokenizer::of("ab").to_json(), old->to_json());
  expect_throws<DataError>([&] { old->encode("c"); }, "is not in the vocabulary of");
}

TEST(CharacterTokenizer, RefusesAnIdOutsideOfTheVocabulary) {
  const auto tokenizer = CharacterTokenizer::of("ab");
  expect_throws<DataError>(
      [&] {
        tokenizer.decode(std::vector<int64_t>{0, 2});
      },
      "id 2 at index 1 is outside of the vocabulary's [0, 2)");
}

}  // namespace
}  // namespace lacuna::character_tokenizer_test
