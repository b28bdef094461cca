#include "lacuna/framework/records/json_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lacuna::json_text_test {
namespace {

TEST(ParseJson, GivesTheTreeWithItsTypes) {
  const auto value = parse_json(R"({"a": [1, 2.5, "3"], "b": {"c": true, "d": null}})");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->to_json(), R"({"a": [1, 2.5, "3"], "b": {"c": true, "d": null}})");
  EXPECT_FALSE(value->at("a").items()[2].is_number());
}

TEST(ParseJson, GivesNothingForWhatIsNoJson) {
  for (const std::string text : {"", "{", R"({"a": 1)", R"({"a": 1}})", "\"\xff\"", "nan"}) {
    EXPECT_FALSE(parse_json(text)) << text;
  }
  EXPECT_FALSE(parse_json(std::string(100, '[') + std::string(100, ']')));
}

TEST(CleanUtf8, ReplacesWhatNoReaderTakes) {
  EXPECT_EQ(clean_utf8("Größe €\U0001F600\n"), "Größe €\U0001F600\n");
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(clean_utf8("a\xff"
                       "b"),
            "a" + bad + "b");
  EXPECT_EQ(clean_utf8(std::string("a\0b", 3)), "a" + bad + "b");
  EXPECT_EQ(clean_utf8("\xC0\xAF"), bad + bad);            // overlong
  EXPECT_EQ(clean_utf8("\xED\xA0\x80"), bad + bad + bad);  // a surrogate
  EXPECT_EQ(clean_utf8("x\xE2\x82"), "x" + bad + bad);     // cut off
}

}  // namespace
}  // namespace lacuna::json_text_test
