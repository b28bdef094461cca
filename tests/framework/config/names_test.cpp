#include "lacuna/framework/config/names.h"

#include <gtest/gtest.h>

namespace lacuna::names_test {
namespace {

TEST(Glob, StarCrossesDotsAndMatchesNothingToo) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("*", "a.b.c"));
  EXPECT_TRUE(glob_match("encoder.*.weight", "encoder.0.fc1.weight"));
  EXPECT_TRUE(glob_match("*.weight", ".weight"));
  EXPECT_TRUE(glob_match("a**b", "ab"));
  EXPECT_FALSE(glob_match("*.weight", "weight"));
  EXPECT_FALSE(glob_match("fc1", "fc1.weight"));
  EXPECT_FALSE(glob_match("fc1.weight", "fc1"));
}

TEST(Glob, GoesBackToTheLastStar) {
  EXPECT_TRUE(glob_match("*ab*ab", "abxabab"));
  EXPECT_TRUE(glob_match("*a?c", "aacabc"));
  EXPECT_FALSE(glob_match("*ab*abc", "abxabab"));
  EXPECT_FALSE(glob_match("a*b", "a"));
}

TEST(Glob, QuestionMarkIsExactlyOneCharacter) {
  EXPECT_TRUE(glob_match("fc?", "fc1"));
  EXPECT_FALSE(glob_match("fc?", "fc"));
  EXPECT_FALSE(glob_match("fc?", "fc12"));
  EXPECT_FALSE(glob_match("?", ""));
}

TEST(Glob, SetsTakeListsRangesAndNegation) {
  EXPECT_TRUE(glob_match("fc[12]", "fc2"));
  EXPECT_FALSE(glob_match("fc[12]", "fc3"));
  EXPECT_TRUE(glob_match("fc[0-9]*", "fc7.bias"));
  EXPECT_FALSE(glob_match("fc[!0-9]", "fc7"));
  EXPECT_TRUE(glob_match("fc[!0-9]", "fcx"));
  EXPECT_TRUE(glob_match("fc[^0-9]", "fcx"));
  EXPECT_TRUE(glob_match("[]a]", "]"));
  EXPECT_TRUE(glob_match("[a-]", "-"));
  EXPECT_FALSE(glob_match("[a-c]", "A"));
}

TEST(Glob, AnUnclosedSetIsAPlainBracket) {
  EXPECT_TRUE(glob_match("a[b", "a[b"));
  EXPECT_FALSE(glob_match("a[b", "ab"));
}

TEST(Names, NearestIsByEditDistanceWithoutRegardToCase) {
  const std::vector<std::string> names{"momentum", "nesterov", "lr"};
  EXPECT_EQ(nearest_name("momentun", names), "momentum");
  EXPECT_EQ(nearest_name("Momentum", names), "momentum");
  EXPECT_EQ(nearest_name("ir", names), "lr");
  EXPECT_EQ(nearest_name("something", names), "");
  EXPECT_EQ(nearest_name("lr", {}), "");
}

TEST(Names, SuggestionNamesTheNearestOrAll) {
  const std::vector<std::string> names{"adam", "sgd"};
  EXPECT_EQ(suggest_name("adan", names), "did you mean 'adam'?");
  EXPECT_EQ(suggest_name("rmsprop", names), "valid names: adam, sgd");
  EXPECT_EQ(suggest_name("adam", {}), "");
}

TEST(Names, OfVeryManyTheFirstAreSuggested) {
  std::vector<std::string> names;
  for (int i = 0; i < 60; ++i) names.push_back(std::to_string(1000 + i));
  EXPECT_TRUE(suggest_name("weight", names).ends_with("1058, 1059"));
  names.push_back("1060");
  EXPECT_TRUE(suggest_name("weight", names).ends_with("1058, 1059, and 1 more"));
}

TEST(Names, AMisspellingIsASlipOrTwo) {
  for (const auto& [a, b] :
       std::vector<std::pair<const char*, const char*>>{{"out_chanels", "out_channels"},
                                                        {"kernal", "kernel"},
                                                        {"typ", "type"},
                                                        {"dri", "dir"},
                                                        {"strat", "start"},
                                                        {"form", "from"},
                                                        {"pth", "path"},
                                                        {"lr", "lrx"},
                                                        {"tired", "tried"},
                                                        {"Kernel", "kernel"}}) {
    EXPECT_TRUE(is_misspelling(a, b)) << a;
    EXPECT_TRUE(is_misspelling(b, a)) << a;
  }
  for (const auto& [a, b] :
       std::vector<std::pair<const char*, const char*>>{{"n", "m"},
                                                        {"lr", "n"},
                                                        {"in_features", "out_features"},
                                                        {"stride", "kernel"},
                                                        {"skip", "path"}}) {
    EXPECT_FALSE(is_misspelling(a, b)) << a;
  }
}

TEST(Names, ToLowerLeavesOtherCharactersAlone) {
  EXPECT_EQ(to_lower("RigL-1_ä"), "rigl-1_ä");
  EXPECT_EQ(to_lower(""), "");
}

TEST(Names, JoinKeepsEmptyParts) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join(std::vector<std::string>{"a"}, ", "), "a");
  EXPECT_EQ(join(std::vector<std::string>{"", "a", ""}, ","), ",a,");
}

TEST(RenameByGlob, StarsStandForWhatTheyMatched) {
  const auto renamed = [](const char* from, const char* to, const char* name) {
    return rename_by_glob(from, to, name).value_or("no match");
  };
  EXPECT_EQ(renamed("module.*", "*", "module.fc.weight"), "fc.weight");
  EXPECT_EQ(renamed("*", "model.*", "fc.weight"), "model.fc.weight");
  EXPECT_EQ(renamed("*.gamma", "*.weight", "a.b.gamma"), "a.b.weight");
  EXPECT_EQ(renamed("h.*.attn.*", "blocks.*.self.*", "h.0.attn.c.bias"), "blocks.0.self.c.bias");
  EXPECT_EQ(renamed("fc.weight", "head.weight", "fc.weight"), "head.weight");
  EXPECT_EQ(renamed("x.*.y.*", "*", "x.1.y.2"), "1");
  EXPECT_EQ(renamed("*a*", "[*|*]", "baca"), "[b|ca]");
  EXPECT_EQ(renamed("*ab", "*", "abab"), "ab");
  EXPECT_EQ(renamed("module.*", "*", "module."), "");
}

TEST(RenameByGlob, GivesNothingWhereTheGlobDoesNotMatch) {
  for (const auto& [from, name] :
       {std::pair("module.*", "fc.weight"), std::pair("fc", "fc.weight"), std::pair("*.b", "a.b.c"),
        std::pair("a*a", "a"), std::pair("a*b*c", "acb"), std::pair("fc?", "fc1"),
        std::pair("fc[1]", "fc1"), std::pair("", "a")}) {
    EXPECT_EQ(rename_by_glob(from, "x", name), std::nullopt) << from << " " << name;
  }
}

}  // namespace
}  // namespace lacuna::names_test
