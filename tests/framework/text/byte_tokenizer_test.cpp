#include "lacuna/framework/text/byte_tokenizer.hpp"

#include <gmock/gmock.h>

#include "framework/text/random_text.h"
#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::byte_tokenizer_test {
namespace {

using ::testing::ElementsAre;

TEST(ByteTokenizer, GivesEachByteItsValue) {
  const ByteTokenizer tokenizer;
  EXPECT_EQ(tokenizer.vocabulary_size(), 256);
  EXPECT_THAT(tokenizer.encode("a\n\xFF\u00e9"), ElementsAre(97, 10, 255, 0xC3, 0xA9));
  EXPECT_EQ(tokenizer.token(65), "A");
  EXPECT_EQ(tokenizer.find("\xFF"), 255);
  EXPECT_EQ(tokenizer.find("ab"), std::nullopt);
  EXPECT_EQ(tokenizer.find(""), std::nullopt);
}

TEST(ByteTokenizer, GivesBackAnyBytes) {
  const ByteTokenizer tokenizer;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::string bytes = random_bytes(seed, 300);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(bytes)), bytes);
  }
}

TEST(ByteTokenizer, RefusesAnIdThatIsNoByte) {
  const ByteTokenizer tokenizer;
  expect_throws<DataError>(
      [&] {
        tokenizer.decode(std::vector<int64_t>{1, 2, 256});
      },
      "id 256 at index 2 is outside of the vocabulary's [0, 256)");
  expect_throws<DataError>([&] { tokenizer.token(-1); }, "id -1 at index 0");
}

}  // namespace
}  // namespace lacuna::byte_tokenizer_test
