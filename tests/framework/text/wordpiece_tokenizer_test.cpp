#include "lacuna/framework/text/wordpiece_tokenizer.hpp"

#include <gmock/gmock.h>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::wordpiece_tokenizer_test {
namespace {

using ::testing::ElementsAre;

constexpr const char* kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nun\n##aff\n##able\n##a\nwant\n##ed\n,\n!\ncafe\n"
    "\u4e2d\n\u6587\nThe\n$\n##\u00e9\n-\n";

std::vector<std::string> tokens(std::string_view text, bool lower_case = true) {
  const auto tokenizer = WordPieceTokenizer::from_file(kVocabulary, lower_case);
  std::vector<std::string> found;
  for (const int64_t id : tokenizer.encode(text)) found.push_back(tokenizer.token(id));
  return found;
}

TEST(WordPieceTokenizer, TakesTheLongestPieces) {
  EXPECT_THAT(tokens("UNaffable wanted"), ElementsAre("un", "##aff", "##able", "want", "##ed"));
  EXPECT_THAT(tokens("una"), ElementsAre("un", "##a"));
  EXPECT_THAT(tokens("unabc the"), ElementsAre("[UNK]", "the"));
  EXPECT_THAT(tokens("affable"), ElementsAre("[UNK]"));  // ## alone begins no word
  EXPECT_THAT(tokens(""), ElementsAre());
}

TEST(WordPieceTokenizer, SplitsPunctuationAndIdeographs) {
  EXPECT_THAT(tokens("the,un!!$the"), ElementsAre("the", ",", "un", "!", "!", "$", "the"));
  EXPECT_THAT(tokens("un\u4e2d\u6587un"), ElementsAre("un", "\u4e2d", "\u6587", "un"));
  EXPECT_THAT(tokens("the\u2014un"), ElementsAre("the", "[UNK]", "un"));
  EXPECT_THAT(tokens("the\u00a0un\u3000the\tun\r\nthe"),
              ElementsAre("the", "un", "the", "un", "the"));
}

TEST(WordPieceTokenizer, StripsAccentsInLowerCaseAlone) {
  EXPECT_THAT(tokens("CAF\u00c9 cafe\u0301"), ElementsAre("cafe", "cafe"));
  EXPECT_THAT(tokens("The un\u00e9", false), ElementsAre("The", "un", "##\u00e9"));
  EXPECT_THAT(tokens("THE", false), ElementsAre("[UNK]"));
}

TEST(WordPieceTokenizer, DropsControlCharacters) {
  EXPECT_THAT(tokens(std::string_view("t\0h\u200be\ufffd\x07\x0b un", 15)),
              ElementsAre("the", "un"));
}

TEST(WordPieceTokenizer, KeepsSpecialTokensWhole) {
  EXPECT_THAT(tokens("the[MASK]un [SEP][CLS"),
              ElementsAre("the", "[MASK]", "un", "[SEP]", "[UNK]", "[UNK]"));
  EXPECT_THAT(tokens("[[PAD]"), ElementsAre("[UNK]", "[PAD]"));
}

TEST(WordPieceTokenizer, GivesUpOnLongWords) {
  const std::string most(WordPieceTokenizer::kMostCharacters - 2, 'a');
  const auto pieces = tokens("un" + most);
  EXPECT_EQ(pieces.size(), most.size() + 1);
  EXPECT_EQ(pieces.back(), "##a");
  EXPECT_THAT(tokens("una" + most), ElementsAre("[UNK]"));
  // Characters count, not bytes.
  std::string wide = "un";
  for (int i = 0; i < 98; ++i) wide += "\u00e9";
  EXPECT_EQ(tokens(wide, false).size(), 99u);
}

TEST(WordPieceTokenizer, JoinsPiecesWhenItDecodes) {
  const auto tokenizer = WordPieceTokenizer::from_file(kVocabulary, true);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("The unaffable, wanted")), "the unaffable , wanted");
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{7, 2}), "##aff [CLS]");
  expect_throws<DataError>([&] { tokenizer.decode(std::vector<int64_t>{99}); },
                           "id 99 at index 0 is outside of the vocabulary's [0, 21)");
}

TEST(WordPieceTokenizer, RefusesWhatIsNoVocabulary) {
  const auto read = [](std::string_view text) { WordPieceTokenizer::from_file(text, true); };
  expect_throws<DataError>([&] { read("[UNK]\na\nb\na\n"); },
                           "line 4: the token 'a' is already there, at line 2");
  expect_throws<DataError>([&] { read("[UNK]\n\nb\n"); }, "line 2: the token is empty");
  expect_throws<DataError>([&] { read("a\nb\n"); }, "the vocabulary has no token [UNK]");
  expect_throws<DataError>([&] { read(""); }, "the vocabulary has no tokens");
  expect_throws<DataError>([&] { read("[UNK]\n\xFF\n"); },
                           "line 2: byte 1 of the line, 0xff, is not UTF-8");
  EXPECT_NO_THROW(read("[UNK]\r\na\r\n\n"));
}

TEST(WordPieceTokenizer, RefusesTextThatIsNotUtf8) {
  expect_throws<DataError>([] { tokens("the \xE9"); }, "byte 4 (line 1)");
}

}  // namespace
}  // namespace lacuna::wordpiece_tokenizer_test
