#include "lacuna/framework/config/config.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::config_test {
namespace {

using testing::ElementsAre;

TEST(Config, ScalarsReadAsTheirTypes) {
  EXPECT_EQ(Config::plain("12").as<int>(), 12);
  EXPECT_EQ(Config::plain("+12").as<int64_t>(), 12);
  EXPECT_EQ(Config::plain("1e6").as<int64_t>(), 1000000);
  EXPECT_EQ(Config::plain("60000.0").as<int64_t>(), 60000);
  EXPECT_EQ(Config::plain("18446744073709551615").as<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(Config::plain("-0.5").as<double>(), -0.5);
  EXPECT_EQ(Config::plain("1e-3").as<float>(), 1e-3f);
  EXPECT_TRUE(std::isinf(Config::plain("-.inf").as<double>()));
  EXPECT_TRUE(Config::plain("true").as<bool>());
  EXPECT_FALSE(Config::plain("off").as<bool>());
  EXPECT_EQ(Config::plain("fc1").as<std::string>(), "fc1");
  EXPECT_THAT(Config::list({1, 2}).as<std::vector<int64_t>>(), ElementsAre(1, 2));
  EXPECT_THAT(Config::list({0.5, 2}).as<std::vector<double>>(), ElementsAre(0.5, 2.0));
  EXPECT_THAT(Config::list({"a", "b"}).as<std::vector<std::string>>(), ElementsAre("a", "b"));
}

TEST(Config, PlainTextHasTheTypeItReadsAs) {
  for (const char* text : {"", "~", "null"}) EXPECT_TRUE(Config::plain(text).is_null());
  for (const char* text : {"0", "-1", ".5", "1e9", ".inf", ".nan"}) {
    EXPECT_TRUE(Config::plain(text).is_number()) << text;
  }
  for (const char* text : {"e", "+-5", "--1", "1.2.3", "0x10", "nan", "1 2"}) {
    EXPECT_FALSE(Config::plain(text).is_number()) << text;
  }
  EXPECT_TRUE(Config::plain("yes").is_bool());
  EXPECT_FALSE(Config("yes").is_bool());
  EXPECT_FALSE(Config("5").is_number());
}

TEST(Config, WrongTypesSayWhatWasExpectedAndFound) {
  expect_throws<ConfigError>([] { Config("x").as<int>(); }, "expected an integer, found 'x'");
  expect_throws<ConfigError>([] { Config(0.5).as<int64_t>(); }, "expected an integer, found '0.5'");
  expect_throws<ConfigError>([] { Config(-1).as<uint64_t>(); },
                             "expected an integer of 0 or more, found '-1'");
  expect_throws<ConfigError>([] { Config(int64_t{1} << 40).as<int>(); },
                             "expected a 32-bit integer, found '1099511627776'");
  expect_throws<ConfigError>([] { Config::plain("9223372036854775808").as<int64_t>(); },
                             "expected an integer, found '9223372036854775808'");
  expect_throws<ConfigError>([] { Config::map().as<double>(); }, "expected a number, found a map");
  expect_throws<ConfigError>([] { Config().as<bool>(); }, "expected true or false, found nothing");
  expect_throws<ConfigError>([] { Config::list({1}).as<std::string>(); },
                             "expected text, found a list of 1 value");
  expect_throws<ConfigError>([] { Config(1).items(); }, "expected a list, found '1'");
  expect_throws<ConfigError>([] { Config(1).entries(); }, "expected a map, found '1'");
  expect_throws<ConfigError>([] { Config::list().get("a"); },
                             "expected a map, found a list of 0 values");
  expect_throws<ConfigError>([] { Config(1).set("a", 1); }, "expected a map, found '1'");
  expect_throws<ConfigError>([] { Config(1).push_back(1); }, "expected a list, found '1'");
}

TEST(Config, MessagesHaveFilePositionAndPath) {
  Config item = Config::plain("many");
  item.set_position({"run.yaml", 3, 5});
  Config root = Config::map({{"model", Config::list({Config::map({{"size", item}})})}});
  const Config size = root.at("model").items()[0].at("size");
  EXPECT_EQ(size.path(), "model.0.size");
  EXPECT_EQ(size.where(), "run.yaml:3:5: model.0.size");
  expect_throws<ConfigError>([&] { size.as<int>(); },
                             "run.yaml:3:5: model.0.size: expected an integer, found 'many'");
  EXPECT_EQ(Config().where(), "config");
  EXPECT_EQ(size.position().text(), "run.yaml:3:5");
  EXPECT_EQ((SourcePosition{"--set a=1", 0, 0}).text(), "--set a=1");
  EXPECT_EQ(SourcePosition().text(), "");
}

TEST(Config, AnAbsentKeyHasThePositionOfItsMap) {
  Config root = Config::map({{"data", Config::map()}});
  root.at("data").set_position({"run.yaml", 7, 3});
  expect_throws<ConfigError>([&] { root.at("data").required<int>("batch_size"); },
                             "run.yaml:7:3: data.batch_size: a required key is missing");
  expect_throws<ConfigError>(
      [&] {
        Config::map({{"a", Config()}}).at("a");
      },
      "a: a required key is missing");
}

TEST(Config, DefaultsAreWrittenIntoTheTree) {
  Config root = Config::map({{"momentum", 0.9}, {"eps", Config()}});
  EXPECT_EQ(root.get<double>("momentum", 0.0), 0.9);
  EXPECT_EQ(root.get<double>("eps", 1e-8), 1e-8);
  EXPECT_EQ(root.get<bool>("nesterov", false), false);
  EXPECT_EQ(root.get<uint64_t>("seed", UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(root.get<float>("gamma", 0.1f), 0.1f);
  EXPECT_EQ(root.get<std::string>("name", "5"), "5");
  EXPECT_THAT(root.get<std::vector<double>>("betas", {0.9, 0.999}), ElementsAre(0.9, 0.999));
  EXPECT_EQ(root.optional<int>("absent"), std::nullopt);
  EXPECT_EQ(root.to_json(),
            R"({"momentum": 0.9, "eps": 1e-08, "nesterov": false, "seed": 18446744073709551615, )"
            R"("gamma": 0.1, "name": "5", "betas": [0.9, 0.999]})");
  root.require_all_read();
}

TEST(Config, UnreadKeysAreErrorsWithTheNearestKnown) {
  Config root = Config::map({{"lr", 0.1}, {"momentun", 0.9}});
  root.get("lr");
  root.get<double>("momentum", 0.0);
  expect_throws<ConfigError>([&] { root.require_all_read(); },
                             "momentun: unknown key 'momentun'; did you mean 'momentum'?");
  Config nested = Config::map({{"data", Config::map({{"dir", "x"}})}});
  EXPECT_TRUE(nested.has("data"));
  EXPECT_THAT([&] { nested.require_all_read(); },
              testing::ThrowsMessage<ConfigError>("data.dir: unknown key 'dir'"));
  nested.mark_read();
  nested.require_all_read();
}

TEST(Config, PeekMarksNothingAsRead) {
  Config root =
      Config::map({{"data", Config::map({{"dir", "x"}, {"a.b", Config::map({{"c", 2}})}})},
                   {"layers", Config::list({Config::map({{"type", "relu"}})})}});
  EXPECT_EQ(root.peek("data.dir").text(), "x");
  EXPECT_EQ(root.peek("layers.0.type").text(), "relu");
  EXPECT_EQ(root.peek("data.a.b.c").as<int>(), 2);
  for (const char* absent : {"", "train", "data.", "data.dir.x", "layers.1", "layers.00"}) {
    EXPECT_TRUE(root.peek(absent).is_null()) << absent;
  }
  EXPECT_EQ(root.children().size(), 2u);
  const Config layers = root.peek("layers");
  EXPECT_EQ(layers.children()[0].first, "0");
  expect_throws<ConfigError>([&] { root.require_all_read(); }, "data: unknown key 'data'");
}

TEST(Config, ItemsOfListsMustBeReadToo) {
  Config root = Config::map({{"layers", Config::list({Config::map({{"tpye", "relu"}})})}});
  for (const Config& layer : root.at("layers").items()) layer.get("type");
  expect_throws<ConfigError>([&] { root.require_all_read(); },
                             "layers.0.tpye: unknown key 'tpye'; did you mean 'type'?");
}

TEST(Config, SetPathGoesThroughMapsAndLists) {
  Config root = Config::map({{"model", Config::list({Config::map({{"size", 1}}), 2})}});
  root.set_path("model.0.size", 5);
  root.set_path("model.1", "last");
  root.set_path("data.train.dir", "here");
  EXPECT_EQ(root.to_json(),
            R"({"model": [{"size": 5}, "last"], "data": {"train": {"dir": "here"}}})");
  EXPECT_EQ(root.at("data").at("train").at("dir").path(), "data.train.dir");
  EXPECT_EQ(root.at("model").items()[1].path(), "model.1");
  expect_throws<ConfigError>([&] { root.set_path("model.2", 0); },
                             "model: '2' is not an index of this list, whose length is 2");
  expect_throws<ConfigError>([&] { root.set_path("model.x", 0); },
                             "model: 'x' is not an index of this list, whose length is 2");
  expect_throws<ConfigError>(
      [&] { root.set_path("model.0.size.x", 0); },
      "model.0.size: is the value '5' and has no 'x'; to replace it, set 'model.0.size' itself");
  expect_throws<ConfigError>([&] { root.set_path("a..b", 0); }, "an empty name in the path");
  expect_throws<ConfigError>([&] { root.set_path("", 0); }, "an empty name in the path ''");
}

TEST(Config, ShowsWhatItFindsOnALine) {
  const Config config = Config::map({{"a", "one\ntwo"}, {"b", std::string(5000, 'x')}});
  expect_throws<ConfigError>([&] { config.required<int64_t>("a"); }, "found 'one\\x0atwo'");
  expect_throws<ConfigError>([&] { config.required<int64_t>("b"); }, "xxx…'");
}

// By a time that grows with the keys, and not with their square: half a minute of it or none.
TEST(Config, HoldsHundredsOfThousandsOfKeys) {
  constexpr int64_t kKeys = 300000;
  const auto name = [](int64_t i) { return "k" + std::to_string(i); };
  Config config;
  for (int64_t i = 0; i < kKeys; ++i) config.set(name(i), i);
  for (int64_t i = 0; i < kKeys; i += 1000) config.set(name(i), -i);
  EXPECT_EQ(config.entries().size(), static_cast<size_t>(kKeys));
  EXPECT_EQ(config.required<int64_t>("k299999"), 299999);
  EXPECT_EQ(config.required<int64_t>("k299000"), -299000);
  Config copy = config.clone();
  EXPECT_TRUE(copy == config);
  copy.erase("k17");
  EXPECT_FALSE(copy.has("k17"));
  EXPECT_EQ(copy.required<int64_t>("k18"), 18);
  copy.set("k17", 1);
  EXPECT_EQ(copy.required<int64_t>("k17"), 1);
  EXPECT_FALSE(copy == config);
  copy.set_path("k17", 17);
  EXPECT_TRUE(copy == config);
}

TEST(Config, CopiesShareAndClonesDoNot) {
  Config root = Config::map({{"a", 1}});
  Config shared = root, copy = root.clone();
  root.set("a", 2);
  EXPECT_EQ(shared.at("a").as<int>(), 2);
  EXPECT_EQ(copy.at("a").as<int>(), 1);
  root.erase("a");
  EXPECT_FALSE(root.has("a"));
}

TEST(Config, EqualityIsByTypeAndValue) {
  EXPECT_EQ(Config::plain("1e3"), Config(1000));
  EXPECT_EQ(Config::plain("1.0"), Config(1));
  EXPECT_EQ(Config::plain("yes"), Config(true));
  EXPECT_EQ(Config::plain("relu"), Config("relu"));
  EXPECT_EQ(Config::plain(".nan"), Config(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_NE(Config(5), Config("5"));
  EXPECT_NE(Config(true), Config("true"));
  EXPECT_NE(Config(), Config(""));
  EXPECT_EQ(Config::map({{"a", 1}, {"b", 2}}), Config::map({{"b", 2}, {"a", 1}}));
  EXPECT_NE(Config::map({{"a", 1}}), Config::map({{"a", 1}, {"b", 2}}));
  EXPECT_NE(Config::list({1, 2}), Config::list({2, 1}));
  EXPECT_NE(Config::list(), Config::map());
}

TEST(Config, YamlIsIndentedAndQuotesWhatWouldReadOtherwise) {
  const Config root =
      Config::map({{"name", "5"},
                   {"glob", "fc*.weight"},
                   {"path", "/data/a b"},
                   {"colon", Config::plain("a: b")},
                   {"empty", ""},
                   {"none", Config()},
                   {"rate", 1e-3},
                   {"whole", 2.0},
                   {"line", "a\nb\t\"\\\x01"},
                   {"layers", Config::list({Config::map({{"type", "linear"}, {"size", 3}}), 7})},
                   {"no_items", Config::list()},
                   {"no_keys", Config::map()}});
  EXPECT_EQ(root.to_yaml(), R"(name: "5"
glob: "fc*.weight"
path: /data/a b
colon: "a: b"
empty: ""
none: null
rate: 0.001
whole: 2.0
line: "a\nb\t\"\\\u0001"
layers:
  - type: linear
    size: 3
  - 7
no_items: []
no_keys: {}
)");
  EXPECT_EQ(Config().to_yaml(), "null\n");
}

TEST(Config, JsonHasNoNanAndKeepsIntegersWhole) {
  const Config root = Config::map({{"a", std::numeric_limits<double>::infinity()},
                                   {"b", int64_t{-9007199254740993}},
                                   {"c", Config::plain("+1e3")},
                                   {"d", Config::plain("yes")},
                                   {"e", "\"\n"},
                                   {"f", Config()}});
  EXPECT_EQ(
      root.to_json(),
      R"({"a": null, "b": -9007199254740993, "c": 1000.0, "d": true, "e": "\"\n", "f": null})");
  EXPECT_EQ(Config::map({{"a", Config::list({1, 2})}, {"b", Config::list()}}).to_json_indented(),
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": []\n}\n");
}

TEST(Config, RangesAreCheckedWithThePosition) {
  const Config root = Config::map({{"p", 1.5}, {"n", 0}});
  EXPECT_EQ(require_range(root, "p", 0.5, 0.0, 1.0), 0.5);
  EXPECT_EQ(require_at_least(root, "n", 3, 3), 3);
  expect_throws<ConfigError>([&] { require_range(root, "p", 1.5, 0.0, 1.0); },
                             "p: expected a number from 0.0 to 1.0, found '1.5'");
  expect_throws<ConfigError>([&] { require_at_least(root, "n", 0, 1); },
                             "n: expected an integer of at least 1, found '0'");
}

}  // namespace
}  // namespace lacuna::config_test
