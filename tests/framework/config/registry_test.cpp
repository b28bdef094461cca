#include "lacuna/framework/config/registry.h"

#include <gmock/gmock.h>

#include "throws.h"

namespace lacuna::registry_test {
namespace {

TEST(Registry, FindsListsAndMakes) {
  Registry<int(int)> registry("shape");
  EXPECT_TRUE(registry.add("square", "x times x", [](int x) { return x * x; }));
  registry.add("line", "x", [](int x) { return x; });
  EXPECT_TRUE(registry.contains("line"));
  EXPECT_FALSE(registry.contains("cube"));
  EXPECT_THAT(registry.names(), testing::ElementsAre("line", "square"));
  EXPECT_EQ(registry.find("square", Config()).make(7), 49);
  EXPECT_EQ(registry.entries().at("line").help, "x");
}

TEST(Registry, UnknownNamesGetThePositionAndTheNearest) {
  Registry<int()> registry("shape");
  registry.add("square", "", [] { return 0; });
  Config config = Config::map({{"type", "sqare"}});
  config.at("type").set_position({"run.yaml", 4, 9});
  expect_throws<ConfigError>([&] { registry.find("sqare", config.at("type")); },
                             "run.yaml:4:9: type: unknown shape 'sqare'; did you mean 'square'?");
  expect_throws<ConfigError>([&] { registry.find("x", config.at("type")); },
                             "unknown shape 'x'; valid names: square");
  EXPECT_THAT([] { Registry<int()>("shape").find("x", Config()); },
              testing::ThrowsMessage<ConfigError>("config: unknown shape 'x'"));
}

TEST(Registry, CaseIsSetAsideOnRequestWhereTheNameAsWrittenIsNotThere) {
  Registry<int()> registry("shape");
  registry.add("square", "", [] { return 1; });
  registry.add("Line", "", [] { return 2; });
  EXPECT_EQ(registry.find_any_case("Square", Config()).make(), 1);
  EXPECT_EQ(registry.find_any_case("Line", Config()).make(), 2);
  expect_throws<ConfigError>([&] { registry.find_any_case("SQARE", Config()); },
                             "unknown shape 'SQARE'; did you mean 'square'?");
  expect_throws<ConfigError>([&] { registry.find("Square", Config()); },
                             "unknown shape 'Square'; did you mean 'square'?");
}

TEST(Registry, ANameIsTakenOnce) {
  Registry<int()> registry("shape");
  registry.add("square", "", [] { return 0; });
  expect_throws<StateError>([&] { registry.add("square", "", [] { return 1; }); },
                            "there is already a shape named 'square'");
}

}  // namespace
}  // namespace lacuna::registry_test
