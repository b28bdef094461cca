#include "lacuna/framework/text/unicode.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace lacuna::unicode_test {
namespace {

// In small letters and without accents.
std::string plain(std::string_view text) {
  std::string result;
  for (const char32_t code : unicode::code_points(text)) {
    unicode::append_without_accents(result, unicode::lower(code));
  }
  return result;
}

int64_t count(bool (*holds)(char32_t)) {
  int64_t found = 0;
  for (char32_t code = 0; code < 0x110000; ++code) found += holds(code) ? 1 : 0;
  return found;
}

// Numbers of code points as the Unicode Character Database 14.0 has them.
TEST(Unicode, HasTheCategoriesOfAllOfIt) {
  EXPECT_EQ(count(unicode::is_letter), 131756);
  EXPECT_EQ(count(unicode::is_number), 1791);
  EXPECT_EQ(count(unicode::is_punctuation), 819);
  EXPECT_EQ(count(unicode::is_accent), 1950);
  EXPECT_EQ(count(unicode::is_control), 65 + 163);
  EXPECT_EQ(count(unicode::is_space), 25);
}

TEST(Unicode, TellsKindsApart) {
  for (const char32_t letter : {U'a', U'Z', U'\u00df', U'\u03a9', U'\u4e2d', U'\U00020000'}) {
    EXPECT_TRUE(unicode::is_letter(letter)) << static_cast<uint32_t>(letter);
  }
  for (const char32_t other : {U'@', U'[', U'`', U'{', U'0', U'\u0301', U'\u20ac'}) {
    EXPECT_FALSE(unicode::is_letter(other)) << static_cast<uint32_t>(other);
  }
  for (const char32_t number : {U'0', U'9', U'\u00b2', U'\u2160', U'\u0660'}) {
    EXPECT_TRUE(unicode::is_number(number)) << static_cast<uint32_t>(number);
  }
  EXPECT_FALSE(unicode::is_number(U':'));
  EXPECT_TRUE(unicode::is_space(U'\u3000'));
  EXPECT_FALSE(unicode::is_space(U'\u200b'));
  EXPECT_TRUE(unicode::is_control(U'\u200b'));
}

TEST(Unicode, MakesCapitalsSmallInAnyScript) {
  EXPECT_EQ(unicode::lower('Q'), U'q');
  EXPECT_EQ(unicode::lower('@'), U'@');
  EXPECT_EQ(unicode::lower(U'\u00c9'), U'\u00e9');
  EXPECT_EQ(unicode::lower(U'\u0141'), U'\u0142');  // every other one of a run
  EXPECT_EQ(unicode::lower(U'\u0142'), U'\u0142');
  EXPECT_EQ(unicode::lower(U'\u03a3'), U'\u03c3');
  EXPECT_EQ(unicode::lower(U'\u0416'), U'\u0436');
  EXPECT_EQ(unicode::lower(U'\u0130'), U'i');
  EXPECT_EQ(unicode::lower(U'\U0001e900'), U'\U0001e922');
  for (char32_t code = 0; code < 0x110000; ++code) {
    ASSERT_EQ(unicode::lower(unicode::lower(code)), unicode::lower(code));
  }
}

TEST(Unicode, StripsAccents) {
  EXPECT_EQ(plain("Caf\u00e9 na\u00efve \u00c5ngstr\u00f6m"), "cafe naive angstrom");
  EXPECT_EQ(plain("e\u0301"), "e");
  EXPECT_EQ(plain("\u1ed6"), "o");                               // two accents
  EXPECT_EQ(plain("\u1fb7"), "\u03b1");                          // three
  EXPECT_EQ(plain("\u0142\u00f8\u00df"), "\u0142\u00f8\u00df");  // no accents by decomposition
  EXPECT_EQ(plain("\uac01"), "\u1100\u1161\u11a8");
  EXPECT_EQ(plain("\uac00"), "\u1100\u1161");
  EXPECT_EQ(plain("\u0b94"), "\u0b92\u0bd7");  // a mark that takes room stays
  EXPECT_EQ(plain("\u037e"), ";");
}

}  // namespace
}  // namespace lacuna::unicode_test
