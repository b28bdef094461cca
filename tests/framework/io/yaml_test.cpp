#include "lacuna/framework/io/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "lacuna/framework/core/error.h"
#include "temporary_folder.h"

namespace lacuna::yaml_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string message_of(std::string_view text) {
  try {
    parse_yaml(text, "c.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string load_message(const std::string& path) {
  try {
    load_yaml(path);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string override_message(Config& root, std::string_view assignment) {
  try {
    apply_override(root, assignment);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string position(const Config& config) {
  return config.position().file + ":" + std::to_string(config.position().line) + ":" +
         std::to_string(config.position().column);
}

TEST(Yaml, ReadsMapsListsAndScalarsWithPositions) {
  const Config root = parse_yaml(
      "# a comment\n"
      "model:\n"
      "  - linear: {in_features: 4, bias: true}\n"
      "  - relu\n"
      "lr: 1e-3\n"
      "name: '1e-3'\n"
      "nothing:\n",
      "c.yaml");
  EXPECT_EQ(position(root), "c.yaml:2:1");
  const Config linear = root.at("model").items()[0].at("linear");
  EXPECT_EQ(position(linear), "c.yaml:3:13");
  EXPECT_EQ(linear.at("in_features").where(), "c.yaml:3:27: model.0.linear.in_features");
  EXPECT_EQ(linear.required<int>("in_features"), 4);
  EXPECT_TRUE(linear.required<bool>("bias"));
  EXPECT_EQ(root.at("model").items()[1].where(), "c.yaml:4:5: model.1");
  EXPECT_TRUE(root.at("lr").is_number());
  EXPECT_FALSE(root.at("name").is_number());
  EXPECT_EQ(root.required<std::string>("name"), "1e-3");
  EXPECT_FALSE(root.has("nothing"));
}

TEST(Yaml, ReadingMarksNothingAsRead) {
  const Config root = parse_yaml("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}\n", "c.yaml");
  EXPECT_THROW(root.require_all_read(), ConfigError);
  root.at("a").required<int>("b");
  root.at("c").required<int>("b");
  const Config d = root.at("d");
  d.required<int>("e");
  try {
    root.require_all_read();
    ADD_FAILURE() << "the merged key was taken for read";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown key 'b'"));
  }
}

TEST(Yaml, CopiesWhatAliasesName) {
  Config root = parse_yaml("a: &x [1, 2]\nb: *x\n", "c.yaml");
  EXPECT_EQ(root.at("b").as<std::vector<int64_t>>(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(root.at("b").items()[1].where(), "c.yaml:1:11: b.1");
  root.set_path("b.0", Config(7));
  EXPECT_EQ(root.at("a").as<std::vector<int64_t>>(), (std::vector<int64_t>{1, 2}));
}

TEST(Yaml, MergesMapsUnderTheirOwnKeys) {
  const Config root = parse_yaml(
      "one: &one {a: 1, b: 1}\n"
      "two: &two {b: 2, c: 2}\n"
      "both: {<<: [*one, *two], a: 0}\n"
      "last: {a: 0, <<: *two}\n"
      "text: {\"<<\": 5}\n",
      "c.yaml");
  EXPECT_EQ(root.at("both"), parse_yaml("{a: 0, b: 1, c: 2}", "x"));
  EXPECT_EQ(root.at("last"), parse_yaml("{a: 0, b: 2, c: 2}", "x"));
  EXPECT_EQ(root.at("text").required<int>("<<"), 5);
  EXPECT_EQ(message_of("a: {<<: 5}"), "c.yaml:1:9: << takes a map or a list of maps");
}

TEST(Yaml, NamesFileLineAndColumnOfSyntaxErrors) {
  EXPECT_THAT(message_of("a: 1\nb: [1, 2\nc: 3\n"), HasSubstr("c.yaml:3:"));
  EXPECT_THAT(message_of("a: 1\nb: [1, 2\nc: 3\n"), HasSubstr("not valid YAML: "));
  EXPECT_THAT(message_of("a: \"open"), HasSubstr("c.yaml:1:"));
  EXPECT_THAT(message_of("a: *nowhere"), AllOf(HasSubstr("c.yaml:1:4"), HasSubstr("anchor")));
  EXPECT_THAT(message_of("a: &x [*x]"), HasSubstr("c.yaml:1:8: an alias inside its own anchor"));
  EXPECT_THAT(message_of("a: 1\n\tb: 2\n"), HasSubstr("c.yaml:2:"));
  EXPECT_THAT(message_of("a: !thing 4"), HasSubstr("the tag '!thing' is not supported"));
}

TEST(Yaml, TagsOfTheCoreSchemaAreRead) {
  const Config root = parse_yaml("{a: !!str 5, b: !!int 5}", "c.yaml");
  EXPECT_FALSE(root.at("a").is_number());
  EXPECT_TRUE(root.at("b").is_number());
}

TEST(Yaml, RefusesKeysThatComeTwice) {
  EXPECT_EQ(message_of("lr: 1\nseed: 2\nlr: 3\n"),
            "c.yaml:3:1: the key 'lr' is given twice; first in line 1");
}

TEST(Yaml, RefusesKeysThatAreNotText) {
  EXPECT_EQ(message_of("? [1, 2]\n: 3\n"), "c.yaml:1:3: a key must be text, found a list");
  EXPECT_EQ(message_of("? {a: 2}\n: 3\n"), "c.yaml:1:3: a key must be text, found a map");
  EXPECT_EQ(message_of("a: &x b\n*x : 3\n"), "c.yaml:2:1: a key must be text, found an alias");
  EXPECT_THAT(message_of("~: 3\n"), HasSubstr("c.yaml:1:1: a key is missing"));
}

TEST(Yaml, RefusesEmptyAndSeveralDocuments) {
  EXPECT_EQ(message_of(""), "c.yaml: is empty; expected a configuration");
  EXPECT_EQ(message_of("# nothing\n"), "c.yaml: is empty; expected a configuration");
  EXPECT_EQ(message_of("---\n"), "c.yaml: is empty; expected a configuration");
  EXPECT_EQ(message_of("a: 1\n---\nb: 2\n"),
            "c.yaml:3:1: a second document begins here; expected one");
  EXPECT_EQ(message_of("---\na: 1\n...\n"), "no error");
}

TEST(Yaml, RefusesAbsurdDepthAndGrowth) {
  for (const std::string open : {"[", "- ", "{a: ", "? "}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += open;
    EXPECT_THAT(message_of(text), HasSubstr("nest deeper than 100")) << open;
  }
  const std::string sixty(60, '['), ends(60, ']');
  EXPECT_THAT(message_of("a: &x " + sixty + ends + "\nb: " + sixty + "*x" + ends),
              HasSubstr("c.yaml:2:64: lists and maps nest deeper than 100"));
  EXPECT_EQ(message_of("a: &x " + sixty + ends + "\nb: [[*x]]"), "no error");
  std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string last = "*a" + std::to_string(i - 1), name = "a" + std::to_string(i);
    bomb += name + ": &" + name + " [";
    for (int j = 0; j < 10; ++j) bomb += last + ", ";
    bomb += "]\n";
  }
  EXPECT_THAT(message_of(bomb), HasSubstr("more than a million values"));
}

TEST(Yaml, RefusesControlCharacters) {
  EXPECT_THAT(message_of("a: 1\nb: \x04 c"), HasSubstr("c.yaml:2:4: the control character 4"));
  EXPECT_THAT(message_of(std::string_view("a: \0 1", 6)), HasSubstr("control character 0"));
}

TEST(Yaml, SaysWhyAFileCannotBeRead) {
  const TemporaryFolder folder;
  EXPECT_EQ(load_message(folder / "none.yaml"),
            "cannot read config '" + folder / "none.yaml" + "': No such file or directory");
  EXPECT_EQ(load_message(folder.path()),
            "cannot read config '" + folder.path() + "': Is a directory");
  std::ofstream(folder / "large.yaml") << std::string(4 * 1048576 + 1, 'x');
  EXPECT_EQ(load_message(folder / "large.yaml"),
            "cannot read config '" + folder / "large.yaml" +
                "': it is larger than 4 MiB, the limit for a configuration");
  std::ofstream(folder / "c.yaml") << "a: 5\nb: {c: [1]}\n";
  EXPECT_EQ(load_yaml(folder / "c.yaml").required<int>("a"), 5);
  EXPECT_EQ(load_yaml(folder / "c.yaml").at("b").where(), folder / "c.yaml" + ":2:4: b");
}

TEST(Yaml, ReadsWindowsLinesAndByteOrderMarks) {
  EXPECT_EQ(parse_yaml("\xEF\xBB\xBF"
                       "a: 1\r\nb: 2\r\n",
                       "x"),
            parse_yaml("{a: 1, b: 2}", "x"));
}

TEST(Yaml, RandomTextIsReadOrRefused) {
  std::mt19937 random(7);
  const std::string letters = "a1:-[]{},&*!|>'\"%#?~<. \n\n\t\\@`=";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += letters[random() % letters.size()];
    try {
      const Config config = parse_yaml(text, "c.yaml");
      EXPECT_EQ(parse_yaml(config.to_yaml(), "again"), config) << text << "\n" << config.to_yaml();
    } catch (const ConfigError&) {
    }
  }
}

TEST(Yaml, RoundTripKeepsNastyText) {
  const std::vector<std::string> nasty = {"",
                                          " ",
                                          "a ",
                                          " a",
                                          "'",
                                          "\"",
                                          "\\",
                                          "a: b",
                                          "a:",
                                          ":a",
                                          "- a",
                                          "-",
                                          "--",
                                          "---",
                                          "...",
                                          "? a",
                                          "#",
                                          "a #b",
                                          "a#b",
                                          "a\nb",
                                          "a\n\nb\n",
                                          "\n",
                                          "\t",
                                          "\r\n",
                                          "a\tb",
                                          "true",
                                          "True",
                                          "yes",
                                          "no",
                                          "on",
                                          "off",
                                          "1e3",
                                          "1",
                                          "-5",
                                          "0x10",
                                          ".inf",
                                          "-.inf",
                                          ".nan",
                                          "~",
                                          "null",
                                          "Null",
                                          "NULL",
                                          "[",
                                          "]",
                                          "{}",
                                          "[1, 2]",
                                          "a, b",
                                          "&a",
                                          "*a",
                                          "!a",
                                          "!!str",
                                          "|",
                                          ">",
                                          "%a",
                                          "@a",
                                          "`a",
                                          "=",
                                          "<<",
                                          "<",
                                          "a'b",
                                          "it's \"so\"",
                                          "ünïcödé ∅ 稀疏 🙂",
                                          "\x01\x1f\x7f",
                                          "\xC2\x85 \xE2\x80\xA8",
                                          "C:\\dir\\new",
                                          "a=b",
                                          "$HOME",
                                          "2020-01-01",
                                          "12:30:45",
                                          std::string(5000, 'x'),
                                          "\xEF\xBB\xBF"
                                          "a"};
  Config root = Config::map();
  Config all = Config::list();
  for (const std::string& text : nasty) {
    all.push_back(Config(text));
    if (text.size() < 1000) root.set(text, Config(text));  // YAML limits keys to 1024 characters
    EXPECT_EQ(parse_yaml(Config(text).to_yaml(), "x"), Config(text)) << text;
  }
  root.set("list", all);
  root.set("deeper", Config::map({{"lists", Config::list({all.clone(), Config::list({all.clone()}),
                                                          Config::list(), Config::map()})}}));
  const Config again = parse_yaml(root.to_yaml(), "again.yaml");
  EXPECT_EQ(again, root) << root.to_yaml();
  EXPECT_EQ(again.to_yaml(), root.to_yaml());
  for (size_t i = 0; i < nasty.size(); ++i) {
    const Config item = again.at("list").items()[i];
    EXPECT_EQ(item.as<std::string>(), nasty[i]);
    EXPECT_FALSE(item.is_number() || item.is_bool()) << nasty[i];
  }
}

TEST(Yaml, RoundTripKeepsTypes) {
  const Config root = Config::map({{"a", Config(true)},
                                   {"b", Config(0.1)},
                                   {"c", Config(int64_t{9007199254740993})},
                                   {"d", Config()},
                                   {"e", Config::plain("18446744073709551615")},
                                   {"f", Config(std::numeric_limits<double>::quiet_NaN())},
                                   {"g", Config(1e300)}});
  const Config again = parse_yaml(root.to_yaml(), "again.yaml");
  EXPECT_EQ(again, root);
  EXPECT_EQ(again.required<double>("b"), 0.1);
  EXPECT_EQ(again.required<int64_t>("c"), 9007199254740993);
  EXPECT_EQ(again.required<uint64_t>("e"), 18446744073709551615u);
  EXPECT_EQ(again.to_json(), root.to_json());
  EXPECT_THAT(again.to_json(), HasSubstr("18446744073709551615"));
  EXPECT_FALSE(Config("true") == Config(true));
  EXPECT_FALSE(Config("5") == Config(5));
  EXPECT_EQ(Config::plain("yes"), Config(true));
}

TEST(Yaml, FoldedTextKeepsItsLineBreaks) {
  const Config root = parse_yaml("a: one\n  two\n\n  three\nb: |\n  x\n  y\n", "c.yaml");
  EXPECT_EQ(root.required<std::string>("a"), "one two\nthree");
  EXPECT_EQ(parse_yaml(root.to_yaml(), "again"), root);
}

TEST(Yaml, TwoSurrogatesOfAJsonFileAreOneCharacter) {
  const TemporaryFolder folder;
  const std::string json =
      R"({"joy": "a\ud83d\ude02b", "text": "\\ud83d\\ude02", "next": "\u00e9"})";
  const Config root = load_yaml(folder.write("config.json", json));
  EXPECT_EQ(root.required<std::string>("joy"),
            "a\xF0\x9F\x98\x82"
            "b");
  EXPECT_EQ(root.required<std::string>("text"), "\\ud83d\\ude02");
  EXPECT_EQ(root.required<std::string>("next"), "\xC3\xA9");
  EXPECT_THAT(load_message(folder.write("config.yaml", json)), HasSubstr("not valid YAML"));
  for (const char* half :
       {R"({"a": "\ud83d"})", R"({"a": "\ude02\ud83d"})", R"({"a": "\ud83d\u)"}) {
    EXPECT_THAT(load_message(folder.write("config.json", half)), HasSubstr("not valid YAML"))
        << half;
  }
}

TEST(Override, SetsScalarsListsAndMaps) {
  Config root = parse_yaml("a: {b: [1, 2]}\n", "c.yaml");
  apply_override(root, "a.b.0=5");
  apply_override(root, "train.epochs=3");
  apply_override(root, "list=[1, {x: 2}]");
  apply_override(root, "text='5'");
  apply_override(root, "equation=a=b");
  apply_override(root, "data.dir=/some/where");
  EXPECT_EQ(root, parse_yaml("{a: {b: [5, 2]}, train: {epochs: 3}, list: [1, {x: 2}], text: '5', "
                             "equation: a=b, data: {dir: /some/where}}",
                             "x"));
  EXPECT_EQ(root.at("a").at("b").items()[0].where(), "--set a.b.0=5: a.b.0");
  EXPECT_EQ(root.at("list").items()[1].at("x").where(), "--set list=[1, {x: 2}]: list.1.x");
  EXPECT_FALSE(root.at("text").is_number());
  apply_override(root, "train.epochs=");
  EXPECT_FALSE(root.at("train").has("epochs"));
}

TEST(Override, SaysWhatIsWrongAndChangesNothing) {
  Config root = parse_yaml("a: {b: [1, 2], c: 5}\n", "c.yaml");
  const Config before = root.clone();
  EXPECT_THAT(override_message(root, "epochs"),
              HasSubstr("--set epochs: expected PATH=VALUE, as in"));
  EXPECT_THAT(override_message(root, "=5"), HasSubstr("--set =5: expected PATH=VALUE"));
  EXPECT_THAT(override_message(root, "a.b.7=5"),
              AllOf(HasSubstr("--set a.b.7=5: "), HasSubstr("'7' is not an index of this list")));
  EXPECT_THAT(override_message(root, "a.c.d=5"),
              AllOf(HasSubstr("--set a.c.d=5: "),
                    HasSubstr("has no 'd'; to replace it, set 'a.c' itself")));
  EXPECT_THAT(override_message(root, "x..y=5"), HasSubstr("an empty name in the path"));
  EXPECT_THAT(override_message(root, "a=[1"),
              AllOf(HasSubstr("--set a=[1: not valid YAML: "), HasSubstr("needs quotes")));
  EXPECT_THAT(override_message(root, "a={b: 1, b: 2}"), HasSubstr("the key 'b' is given twice"));
  EXPECT_EQ(root, before);
}

TEST(Override, RefusesWhatWouldNestTooDeepToBeReadAgain) {
  Config root = parse_yaml("a: 1\n", "c.yaml");
  const Config before = root.clone();
  std::string path = "x";
  for (int part = 1; part < 60; ++part) path += ".x";
  EXPECT_THAT(override_message(root, path + "=" + std::string(41, '[') + std::string(41, ']')),
              HasSubstr("lists and maps nest deeper than 100"));
  EXPECT_EQ(root, before);
  apply_override(root, path + "=" + std::string(40, '[') + std::string(40, ']'));
  EXPECT_EQ(parse_yaml(root.to_yaml(), "again"), root);
}

}  // namespace
}  // namespace lacuna::yaml_test
