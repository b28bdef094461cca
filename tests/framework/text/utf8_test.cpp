#include "lacuna/framework/text/utf8.hpp"

#include <gmock/gmock.h>

#include <string>

#include "framework/text/random_text.h"
#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::utf8_test {
namespace {

using std::string_literals::operator""s;

TEST(Utf8, TakesEveryCodePoint) {
  std::string text;
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (code < 0xD800 || code > 0xDFFF) unicode::append(text, code);
  }
  EXPECT_NO_THROW(require_utf8(text));
  size_t at = 0;
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (code == 0xD800) code = 0xE000;
    ASSERT_EQ(unicode::next(text, at), code);
  }
  EXPECT_EQ(at, text.size());
  EXPECT_NO_THROW(require_utf8(""));
}

TEST(Utf8, SaysWhereTextIsNot) {
  expect_throws<DataError>([] { require_utf8("ab\nc\xE9 d"); },
                           "byte 4 (line 2): the byte 0xe9 is not UTF-8; convert the text to "
                           "UTF-8, or use `tokenizer: bytes`");
}

TEST(Utf8, RefusesWhatOnlyLooksLikeIt) {
  for (const std::string& text :
       {"\x80"s, "\xC0\x80"s, "\xC1\xBF"s, "\xE0\x9F\xBF"s, "\xED\xA0\x80"s, "\xF0\x8F\xBF\xBF"s,
        "\xF4\x90\x80\x80"s, "\xF5\x80\x80\x80"s, "\xFF"s, "\xC3"s, "\xE2\x82"s, "\xF0\x9F\x98"s,
        "\xC3\x28"s, "\xE2\x28\xA1"s, "\xE2\x82\x28"s, "\xF0\x9F\x98\x28"s}) {
    expect_throws<DataError>([&] { require_utf8("x" + text); }, "byte 1 (line 1)");
  }
}

}  // namespace
}  // namespace lacuna::utf8_test
