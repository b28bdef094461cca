#include "lacuna/framework/text/bpe_tokenizer.hpp"

#include <gmock/gmock.h>

#include "framework/text/bpe_files.h"
#include "framework/text/random_text.h"
#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::bpe_tokenizer_test {
namespace {

using ::testing::ElementsAre;

// "Ġ" is how a space is written.
constexpr const char* kMerges = "#version: 0.2\nl o\nlo w\ne r\n\u0120 low\nlow er\n\u0120low er\n";

BpeTokenizer small() {
  return BpeTokenizer::from_files(
      vocabulary_json(small_bpe_tokens({"lo", "low", "er", "\u0120low", "lower", "\u0120lower"})),
      kMerges);
}

int64_t letter(char character) { return character - '!'; }

TEST(BpeTokenizer, MergesThePairOfLowestRankFirst) {
  const BpeTokenizer tokenizer = small();
  EXPECT_EQ(tokenizer.vocabulary_size(), 256 + 6 + 1);
  // l o w e r → lo w e r → low e r → low er → lower.
  EXPECT_THAT(tokenizer.encode("lower"), ElementsAre(260));
  // Ġ l o w e r → … → Ġ low er → Ġlow er → Ġlower, since "Ġ low" has the lower rank.
  EXPECT_THAT(tokenizer.encode("lower lower"), ElementsAre(260, 261));
  EXPECT_THAT(tokenizer.encode("slowest"),
              ElementsAre(letter('s'), 257, letter('e'), letter('s'), letter('t')));
  EXPECT_THAT(tokenizer.encode("!"), ElementsAre(0));
  EXPECT_THAT(tokenizer.encode(" "), ElementsAre(220));
  EXPECT_THAT(tokenizer.encode(""), ElementsAre());
}

TEST(BpeTokenizer, MergesTheLeftmostOfEqualPairs) {
  const BpeTokenizer tokenizer(small_bpe_tokens({"aa", "aaa"}), {"a a", "aa a"});
  EXPECT_THAT(tokenizer.encode("aaa"), ElementsAre(257));
  EXPECT_THAT(tokenizer.encode("aaaa"), ElementsAre(256, 256));
  EXPECT_THAT(tokenizer.encode("aaaaa"), ElementsAre(256, 257));
}

TEST(BpeTokenizer, MergesNothingAcrossPieces) {
  const BpeTokenizer tokenizer(small_bpe_tokens({"o1"}), {"o 1"});
  EXPECT_THAT(tokenizer.encode("o1"), ElementsAre(letter('o'), letter('1')));
}

TEST(BpeTokenizer, KeepsSpecialTokensWhole) {
  const BpeTokenizer tokenizer = small();
  const std::string text = "low<|endoftext|><|endoftext|> low <|end";
  const std::vector<int64_t> ids = tokenizer.encode(text);
  EXPECT_THAT(std::vector<int64_t>(ids.begin(), ids.begin() + 4), ElementsAre(257, 262, 262, 259));
  EXPECT_EQ(tokenizer.decode(ids), text);
  EXPECT_EQ(tokenizer.find("<|endoftext|>"), 262);
}

TEST(BpeTokenizer, GivesBackAnyText) {
  const BpeTokenizer tokenizer = small();
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const std::string text = random_text(seed, 300) + "lower low <|endoftext|>";
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(BpeTokenizer, MergesAPieceOfAMillionBytes) {
  const BpeTokenizer tokenizer(small_bpe_tokens({"aa", "aaaa"}), {"a a", "aa aa"});
  const std::vector<int64_t> ids = tokenizer.encode(std::string(1 << 20, 'a'));
  EXPECT_EQ(ids, std::vector<int64_t>(1 << 18, 257));
}

TEST(BpeTokenizer, RefusesTextThatItHasNoTokensFor) {
  expect_throws<DataError>([] { small().encode("a\nb\x80"); }, "byte 3 (line 2)");
  const BpeTokenizer few({"a", "b"}, {});
  expect_throws<DataError>([&] { few.encode("ab c"); },
                           "the vocabulary has no token for the byte 0x20, which is in ' c'");
  expect_throws<DataError>(
      [&] {
        few.decode(std::vector<int64_t>{0, 1, 2});
      },
      "id 2 at index 2 is outside of the vocabulary's [0, 2)");
}

TEST(BpeTokenizer, RefusesAVocabularyWithHolesOrDuplicates) {
  const auto read = [](const char* json) { BpeTokenizer::from_files(json, ""); };
  expect_throws<DataError>(
      [&] { read(R"({"a": 0, "b": 2})"); },
      "vocabulary: the token 'b' has the id 2, and with 2 tokens ids are 0 to 1: there is a gap");
  expect_throws<DataError>([&] { read(R"({"a": 1, "b": 1})"); },
                           "vocabulary: the tokens 'a' and 'b' both have the id 1");
  expect_throws<DataError>([&] { read(R"({"a": 0, "a": 1})"); }, "vocabulary: 'a' appears twice");
  expect_throws<DataError>([&] { read(R"({"a": "0"})"); }, "the token 'a': expected its id");
  expect_throws<DataError>([&] { read(R"({"a": -1})"); }, "found the number -1");
  expect_throws<DataError>([&] { read(R"({"a": 0.5})"); }, "found the number 0.5");
  expect_throws<DataError>([&] { read(R"({"a": {"b": 0}})"); },
                           "'a': expected the token's id, a whole number from 0, found ");
  expect_throws<DataError>([&] { read(R"([0])"); }, "it does not begin with '{'");
  expect_throws<DataError>([&] { read(R"({"a": 0)"); }, "not JSON (at byte ");
  expect_throws<DataError>([&] { read("{\"\xE9\": 0}"); }, "not JSON (at byte ");
  expect_throws<DataError>([&] { read("{}"); }, "the vocabulary has no tokens");
  expect_throws<DataError>([&] { read(""); }, "it does not begin with '{'");
  expect_throws<DataError>([&] { read(R"({"": 0})"); }, "id 0: the token is empty");
  expect_throws<DataError>([&] { read(R"({"a b": 0})"); },
                           "vocabulary: the token 'a b' (id 0) holds a character that stands for "
                           "no byte");
  std::string deep(100000, '[');
  expect_throws<DataError>([&] { read(("{\"a\": " + deep).c_str()); }, "in the list 'a'");
}

TEST(BpeTokenizer, RefusesMergesThatReferToNothing) {
  const std::string json = vocabulary_json(small_bpe_tokens({"lo"}));
  const auto read = [&](const char* merges) { BpeTokenizer::from_files(json, merges); };
  expect_throws<DataError>([&] { read("#version: 0.2\nl o\nlo w\n"); },
                           "merges, line 3: the vocabulary has no token 'low'");
  expect_throws<DataError>([&] { read("l o\nlow e\n"); },
                           "merges, line 2: the vocabulary has no token 'low'");
  expect_throws<DataError>(
      [&] { read("l o\r\n\r\nl o"); },
      "merges, line 2: expected two tokens with a space between them, found ''");
  expect_throws<DataError>([&] { read("l o x"); }, "merges, line 1: expected two tokens");
  expect_throws<DataError>([&] { read("lo"); }, "merges, line 1: expected two tokens");
  expect_throws<DataError>([&] { read(" lo"); }, "merges, line 1: expected two tokens");
  expect_throws<DataError>([&] { read("l o\nl o"); }, "merges, line 2: 'l o' is already in line 1");
  EXPECT_NO_THROW(read("l o\r\n\n\n"));
}

}  // namespace
}  // namespace lacuna::bpe_tokenizer_test
