#include "lacuna/framework/text/bpe_pieces.hpp"

#include <gmock/gmock.h>

#include <string>

#include "framework/text/random_text.h"

namespace lacuna::bpe_pieces_test {
namespace {

using ::testing::ElementsAre;

TEST(BpePieces, KeepTheSpaceBeforeAWord) {
  EXPECT_THAT(bpe_pieces("Hello world, 42 times!"),
              ElementsAre("Hello", " world", ",", " 42", " times", "!"));
  EXPECT_THAT(bpe_pieces("abc123 x_1"), ElementsAre("abc", "123", " x", "_", "1"));
  EXPECT_THAT(bpe_pieces(""), ElementsAre());
}

TEST(BpePieces, SplitContractionsInSmallLetters) {
  EXPECT_THAT(bpe_pieces("it's we'll they're I'm you've he'd don't"),
              ElementsAre("it", "'s", " we", "'ll", " they", "'re", " I", "'m", " you", "'ve",
                          " he", "'d", " don", "'t"));
  EXPECT_THAT(bpe_pieces("IT'S"), ElementsAre("IT", "'", "S"));
  EXPECT_THAT(bpe_pieces("'sun"), ElementsAre("'s", "un"));
  EXPECT_THAT(bpe_pieces("''s"), ElementsAre("''", "s"));
  EXPECT_THAT(bpe_pieces(" 's"), ElementsAre(" '", "s"));
  EXPECT_THAT(bpe_pieces("'l"), ElementsAre("'", "l"));
}

TEST(BpePieces, LeaveTheLastSpaceToWhatFollows) {
  EXPECT_THAT(bpe_pieces("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(bpe_pieces("a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
  EXPECT_THAT(bpe_pieces("a \nb"), ElementsAre("a", " ", "\n", "b"));
  EXPECT_THAT(bpe_pieces("a\n b"), ElementsAre("a", "\n", " b"));
  EXPECT_THAT(bpe_pieces("a  \n"), ElementsAre("a", "  \n"));
  EXPECT_THAT(bpe_pieces(" "), ElementsAre(" "));
  EXPECT_THAT(bpe_pieces("\nb"), ElementsAre("\n", "b"));
  EXPECT_THAT(bpe_pieces("a\u00a0b"), ElementsAre("a", "\u00a0", "b"));
}

TEST(BpePieces, KnowLettersAndNumbersOfAllScripts) {
  EXPECT_THAT(bpe_pieces("\u00e9t\u00e9 \u4e2d\u6587\u0665\u00b2\u20ac"),
              ElementsAre("\u00e9t\u00e9", " \u4e2d\u6587", "\u0665\u00b2", "\u20ac"));
  EXPECT_THAT(bpe_pieces("e\u0301a"), ElementsAre("e", "\u0301", "a"));  // a mark is no letter
}

TEST(BpePieces, AreTheTextWhenJoined) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::string text = random_text(seed, 200);
    std::string joined;
    for (const std::string_view piece : bpe_pieces(text)) {
      EXPECT_FALSE(piece.empty());
      joined += piece;
    }
    EXPECT_EQ(joined, text);
  }
}

}  // namespace
}  // namespace lacuna::bpe_pieces_test
