#include "lacuna/framework/text/sentences.hpp"

#include <gmock/gmock.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/text/byte_tokenizer.hpp"
#include "throws.h"

namespace lacuna::sentences_test {
namespace {

using ::testing::ElementsAre;

// [PAD] [UNK] [CLS] [SEP] a b c
TokenizerPtr words() {
  return tokenizer_from_json(
      R"({"tokenizer": "words", "lower_case": true,
          "tokens": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c"]})");
}

TEST(Sentences, StandBetweenTheSpecialTokens) {
  EXPECT_THAT(encode_example(*words(), "a b", 8), ElementsAre(2, 4, 5, 3));
  const EncodedPair pair = encode_pair(*words(), "a b", "c", 8);
  EXPECT_THAT(pair.ids, ElementsAre(2, 4, 5, 3, 6, 3));
  EXPECT_EQ(pair.first, 4);
}

TEST(Sentences, LoseTheEndOfTheLongerOneFirst) {
  // Room for three beside [CLS] and two [SEP].
  EXPECT_THAT(encode_pair(*words(), "a a a a", "b", 6).ids, ElementsAre(2, 4, 4, 3, 5, 3));
  EXPECT_THAT(encode_pair(*words(), "a", "b b b", 6).ids, ElementsAre(2, 4, 3, 5, 5, 3));
  // Of two that are as long the second is cut.
  EXPECT_THAT(encode_pair(*words(), "a a a", "b b b", 6).ids, ElementsAre(2, 4, 4, 3, 5, 3));
  EXPECT_THAT(encode_pair(*words(), "", "b b b b", 6).ids, ElementsAre(2, 3, 5, 5, 5, 3));
}

TEST(Sentences, NeedRoomAndASeparator) {
  expect_throws<StateError>([] { encode_example(*words(), "a", 2); },
                            "a length of 2 leaves no room for a token of the sentence");
  expect_throws<StateError>([] { encode_pair(*words(), "a", "b", 4); },
                            "a length of 4 leaves no room for a token of each of two sentences");
  expect_throws<StateError>([] { encode_pair(ByteTokenizer(), "a", "b", 9); },
                            "two sentences need a [SEP] between them");
}

}  // namespace
}  // namespace lacuna::sentences_test
