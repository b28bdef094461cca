#include "lacuna/framework/text/word_tokenizer.hpp"

#include <gmock/gmock.h>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::word_tokenizer_test {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> tokens_of(const Tokenizer& tokenizer) {
  std::vector<std::string> tokens;
  for (int64_t id = 0; id < tokenizer.vocabulary_size(); ++id)
    tokens.push_back(tokenizer.token(id));
  return tokens;
}

std::vector<std::string> vocabulary(std::string_view text, WordOptions options) {
  WordCounter counter(options);
  counter.add(text);
  return tokens_of(*counter.make());
}

constexpr std::string_view kText = "the cat  The dog\na\tcat the \u00c9t\u00e9\u00a0.";

TEST(WordTokenizer, PutsFrequentWordsFirstAndEqualOnesInOrder) {
  EXPECT_THAT(vocabulary(kText, {}),
              ElementsAre("[PAD]", "[UNK]", "the", "cat", ".", "a", "dog", "\u00e9t\u00e9"));
  EXPECT_THAT(vocabulary(kText, {.lower_case = false}),
              ElementsAre("[PAD]", "[UNK]", "cat", "the", ".", "The", "a", "dog", "\u00c9t\u00e9"));
}

TEST(WordTokenizer, LeavesOutRareWordsAndWhatThereIsNoRoomFor) {
  EXPECT_THAT(vocabulary(kText, {.min_count = 2}), ElementsAre("[PAD]", "[UNK]", "the", "cat"));
  EXPECT_THAT(vocabulary(kText, {.max_size = 5}), ElementsAre("[PAD]", "[UNK]", "the", "cat", "."));
  EXPECT_THAT(vocabulary(kText, {.max_size = 4, .cls = true}),
              ElementsAre("[PAD]", "[UNK]", "[CLS]", "the"));
  expect_throws<DataError>([] { vocabulary("a b", {.min_count = 2}); },
                           "no word occurs 2 times or more");
  expect_throws<DataError>([] { vocabulary(" \n", {}); }, "no word occurs 1 time or more");
}

TEST(WordTokenizer, CountsTheFirstWordsOfATextAlone) {
  WordCounter counter({});
  counter.add(kText, 2);
  counter.add("dog", 0);
  EXPECT_THAT(tokens_of(*counter.make()), ElementsAre("[PAD]", "[UNK]", "cat", "the"));
  EXPECT_EQ(count_words(kText), 9);
  EXPECT_EQ(count_words(""), 0);
}

TEST(WordTokenizer, EncodesUnknownWordsAsSuch) {
  WordCounter counter({});
  counter.add(kText);
  const auto tokenizer = counter.make();
  const std::vector<int64_t> ids = tokenizer->encode("  The  CAT sat \u00c9T\u00c9");
  EXPECT_THAT(ids, ElementsAre(2, 3, 1, 7));
  EXPECT_EQ(tokenizer->decode(ids), "the cat [UNK] \u00e9t\u00e9");
  EXPECT_EQ(tokenizer->find("dog"), 6);
  EXPECT_EQ(tokenizer->find("sat"), std::nullopt);
  EXPECT_THAT(tokenizer->encode(""), ElementsAre());
  expect_throws<DataError>([&] { tokenizer->decode(std::vector<int64_t>{8}); },
                           "id 8 at index 0 is outside of the vocabulary's [0, 8)");
  expect_throws<DataError>([&] { tokenizer->encode("a\xFF"); }, "byte 1 (line 1)");
}

TEST(WordTokenizer, TakesNoSpecialTokenFromTheText) {
  EXPECT_THAT(vocabulary("[PAD] [UNK] x", {.lower_case = false}),
              ElementsAre("[PAD]", "[UNK]", "x"));
}

TEST(WordTokenizer, RefusesWhatIsNoVocabulary) {
  expect_throws<DataError>(
      [] {
        WordTokenizer({"[PAD]", "x"}, true);
      },
      "a vocabulary of words begins with [PAD] and [UNK]");
  expect_throws<DataError>(
      [] {
        WordTokenizer({"[PAD]", "[UNK]", "x", "x"}, true);
      },
      "id 3: the token 'x' is already there, at id 2");
  expect_throws<DataError>(
      [] {
        WordTokenizer({"[PAD]", "[UNK]", ""}, true);
      },
      "id 2: the token is empty");
}

}  // namespace
}  // namespace lacuna::word_tokenizer_test
