#include "lacuna/framework/data/formats/token_sequence.hpp"

#include <gmock/gmock.h>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/text_file.hpp"

namespace lacuna::token_sequence_test {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> read(const TokenSequence& tokens, int64_t begin, size_t count) {
  std::vector<int64_t> out(count);
  tokens.read(begin, out);
  return out;
}

TEST(TokenSequence, ReadsFromMemory) {
  const auto tokens = tokens_in_memory(std::vector<int64_t>{5, 6, 7, 8});
  EXPECT_EQ(tokens->size(), 4);
  EXPECT_THAT(read(*tokens, 1, 2), ElementsAre(6, 7));
  EXPECT_THAT(read(*tokens, 4, 0), ElementsAre());
}

TEST(TokenSequence, HoldsTokensOfAnyVocabulary) {
  for (const int64_t vocabulary : {int64_t{2}, int64_t{65536}, int64_t{65537}, int64_t{1} << 31}) {
    TokensInMemory tokens(vocabulary);
    tokens.append(std::vector<int64_t>{vocabulary - 1, 0});
    tokens.append(std::vector<int64_t>{1});
    EXPECT_EQ(tokens.size(), 3);
    EXPECT_THAT(read(tokens, 0, 3), ElementsAre(vocabulary - 1, 0, 1));
  }
}

TEST(TokenSequence, ReadsBytesAcrossFiles) {
  const TemporaryFolder folder;
  const std::vector<std::filesystem::path> paths = {
      folder.write("a", "ab"), folder.write("b", "\xFF"), folder.write("c", "cde")};
  const auto tokens = bytes_of_files(paths);
  EXPECT_EQ(tokens->size(), 6);
  EXPECT_THAT(read(*tokens, 0, 6), ElementsAre('a', 'b', 255, 'c', 'd', 'e'));
  EXPECT_THAT(read(*tokens, 1, 3), ElementsAre('b', 255, 'c'));
  EXPECT_THAT(read(*tokens, 2, 1), ElementsAre(255));
  EXPECT_THAT(read(*tokens, 5, 1), ElementsAre('e'));
}

TEST(TokenSequence, ReadsSixteenBitsTheLowByteFirst) {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("train.bin", std::string_view("\x01\x00\x00\x01\xFF\xFF", 6));
  EXPECT_THAT(read(*tokens_of_file(path, 65536), 0, 3), ElementsAre(1, 256, 65535));
  const auto tokens = tokens_of_file(path, 300);
  EXPECT_THAT(read(*tokens, 0, 2), ElementsAre(1, 256));
  EXPECT_THAT(message_of<DataError>([&] { read(*tokens, 1, 2); }),
              HasSubstr(path + ": the token 65535 at position 2 (byte 4) is outside of the "
                               "vocabulary's [0, 300)"));
}

TEST(TokenSequence, RefusesFilesThatItCannotBe) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of<DataError>([&] { tokens_of_file(folder / "none", 10); }),
              HasSubstr(folder / "none" + ": cannot be opened: No such file"));
  EXPECT_THAT(message_of<DataError>([&] { tokens_of_file(folder.write("odd", "abc"), 10); }),
              HasSubstr(folder / "odd" + ": 3 bytes are not a whole number of 16-bit tokens"));
  EXPECT_THAT(message_of<DataError>([&] { tokens_of_file(folder.write("empty", ""), 10); }),
              HasSubstr(folder / "empty" + ": the file is empty"));
  EXPECT_THAT(message_of<DataError>([&] { tokens_of_file(folder.path(), 10); }),
              HasSubstr(folder.path() + ": is not a file"));
}

TEST(TextFiles, AreThoseOfAFolderByName) {
  const TemporaryFolder folder;
  folder.write("b.txt", "2");
  folder.write("a.txt", "1");
  folder.write(".hidden", "3");
  EXPECT_THAT(text_files(folder.path()),
              ElementsAre(std::filesystem::path(folder / "a.txt"), folder / "b.txt"));
  EXPECT_THAT(text_files(folder / "a.txt"), ElementsAre(std::filesystem::path(folder / "a.txt")));
  std::filesystem::create_directory(folder / "below");
  EXPECT_THAT(message_of<DataError>([&] { text_files(folder.path()); }),
              HasSubstr(folder / "below" + ": neither a file nor a link to one"));
  EXPECT_THAT(message_of<DataError>([&] { text_files(folder / "below"); }),
              HasSubstr(folder / "below" + ": there are no files in this folder"));
}

}  // namespace
}  // namespace lacuna::token_sequence_test
