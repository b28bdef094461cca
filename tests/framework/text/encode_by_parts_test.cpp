#include "lacuna/framework/text/encode_by_parts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/text/byte_tokenizer.hpp"
#include "lacuna/framework/text/character_tokenizer.hpp"
#include "throws.h"

namespace lacuna::encode_by_parts_test {
namespace {

constexpr size_t kSize = size_t{5} << 19;  // two parts and a half

// Parts of it end within a character of two, three or four bytes.
std::string long_text(size_t shift) {
  std::string text(shift, 'a');
  while (text.size() < kSize) text += "z\xC3\xBC\xE2\x82\xAC\xF0\x9F\x99\x82\n";
  return text;
}

std::vector<int64_t> encoded(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int64_t> ids;
  size_t most = 0;
  encode_by_parts(tokenizer, text, [&](std::span<const int64_t> part) {
    ids.insert(ids.end(), part.begin(), part.end());
    most = std::max(most, part.size());
  });
  EXPECT_LE(most, size_t{1} << 20);
  return ids;
}

TEST(EncodeByParts, GivesTheTokensOfTheWholeText) {
  const ByteTokenizer bytes;
  for (size_t shift = 0; shift < 4; ++shift) {
    const std::string text = long_text(shift);
    const CharacterTokenizer characters = CharacterTokenizer::of(text);
    EXPECT_TRUE(encoded(characters, text) == characters.encode(text)) << shift;
    EXPECT_TRUE(encoded(bytes, text) == bytes.encode(text)) << shift;
  }
  const std::string within_a_character(kSize, '\x80');
  EXPECT_TRUE(encoded(bytes, within_a_character) == bytes.encode(within_a_character));
  EXPECT_TRUE(encoded(bytes, "").empty());
}

TEST(EncodeByParts, MistakesAreNamedWhereTheyAreInAllOfIt) {
  const std::string text = long_text(0), other = text + "q";
  const CharacterTokenizer tokenizer = CharacterTokenizer::of(text);
  std::string whole;
  try {
    tokenizer.encode(other);
  } catch (const DataError& error) {
    whole = error.what();
  }
  EXPECT_THAT(whole, testing::HasSubstr("the character 'q'"));
  expect_throws<DataError>([&] { encoded(tokenizer, other); }, whole);
}

}  // namespace
}  // namespace lacuna::encode_by_parts_test
