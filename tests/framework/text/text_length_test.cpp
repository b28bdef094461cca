#include "lacuna/framework/text/text_length.hpp"

#include <gmock/gmock.h>

#include "lacuna/framework/text/word_tokenizer.hpp"

namespace lacuna::text_length_test {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

TEST(TextLength, CountsCodePoints) {
  EXPECT_EQ(count_characters(""), 0);
  EXPECT_EQ(count_characters("abc"), 3);
  EXPECT_EQ(count_characters("aé€😀"), 4);
  EXPECT_EQ(count_characters("\xA9x\xC3"), 2);  // the end of one, and the beginning of another
}

TEST(TextLength, FindsTokensByTheirLines) {
  const WordTokenizer words({"[PAD]", "[UNK]", "a", "bé"}, true);
  const std::string text = "a bé\n\n  a\nbé a a\n";  // lines of 5, 1, 4 and 7 characters
  const auto before = [&](std::vector<int64_t> places) {
    return characters_before(words, text, places);
  };
  EXPECT_THAT(before({0, 2, 3, 6}), ElementsAre(0.0, 6.0, 10.0, 17.0));
  EXPECT_THAT(before({1, 5}), ElementsAre(DoubleEq(2.5), DoubleEq(10 + 7 * 2.0 / 3)));
  EXPECT_THAT(before({9}), ElementsAre(17.0));
  EXPECT_THAT(characters_before(words, "", std::vector<int64_t>{0}), ElementsAre(0.0));
  EXPECT_THAT(characters_before(words, "a a", std::vector<int64_t>{1, 2}),
              ElementsAre(DoubleEq(1.5), 3.0));
}

}  // namespace
}  // namespace lacuna::text_length_test
