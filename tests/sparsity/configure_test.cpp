#include "lacuna/sparsity/configure.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/sparsity/group.h"
#include "lacuna/sparsity/set.h"
#include "test_model.h"
#include "throws.h"

namespace lacuna {
namespace {

std::unique_ptr<SparsityAlgorithm> from_yaml(const std::string& yaml) {
  register_builtins();
  const Config config = parse_yaml(yaml, "c.yaml").at("sparsity");
  auto algorithm = configure(config, 0);
  config.require_all_read();
  return algorithm;
}

TEST(ConfigureTest, NumberMapAndNothing) {
  EXPECT_EQ(from_yaml("sparsity: 0.9")->type(), "static");
  EXPECT_EQ(from_yaml("sparsity: {sparsity: 0.9}")->type(), "static");
  EXPECT_EQ(from_yaml("sparsity: {type: set, sparsity: 0.9}")->type(), "set");
  EXPECT_EQ(configure(Config(), 0), nullptr);
}

TEST(ConfigureTest, ModelZooSectionsAreTakenWordForWord) {
  const std::string dynamic = R"(
sparsity:
  algorithm: ALGORITHM
  sparsity: 0.9
  init_method: random
  drop_fraction: {type: cosine, init: 0.3, half_period: 3584}
  update: {freq: 100, stop: 3584}
  param_filter:
    - "fc1*weight"
    - "fc2*weight"
)";
  for (const char* name : {"rigl", "set"}) {
    std::string yaml = dynamic;
    yaml.replace(yaml.find("ALGORITHM"), 9, name);
    EXPECT_EQ(from_yaml(yaml)->type(), name);
  }
  EXPECT_EQ(
      from_yaml("sparsity:\n  - algorithm: static\n    sparsity: 0.5\n    init_method: topk\n")
          ->type(),
      "group");
}

TEST(ConfigureTest, GroupsGiveParametersToTheFirstMatch) {
  const auto algorithm = from_yaml(R"(
sparsity:
  - {algorithm: static, sparsity: 0.5, param_filter: "fc1.*weight"}
  - {algorithm: set, sparsity: 0.75, param_filter: "*weight"}
)");
  TestModel t;
  t.apply(*algorithm);
  EXPECT_EQ(t.weight("fc1.weight").sparsified_by, "static");
  EXPECT_EQ(t.weight("fc2.weight").sparsified_by, "set");
  EXPECT_DOUBLE_EQ(algorithm->target_sparsity(t.weight("fc1.weight")), 0.5);
  t.step();
  ASSERT_EQ(algorithm->last_update().size(), 1u);
  EXPECT_EQ(algorithm->last_update()[0].parameter, "fc2.weight");
}

TEST(ConfigureTest, GroupEntryWithNothingLeftIsAnError) {
  const auto algorithm = from_yaml(R"(
sparsity:
  - {sparsity: 0.5, param_filter: "*weight"}
  - {sparsity: 0.75, param_filter: "fc1.weight"}
)");
  TestModel t;
  expect_throws<ConfigError>([&] { t.model.apply(*algorithm); },
                             "entry 1 of the sparsity group (static, 'fc1.weight'): earlier");
}

TEST(ConfigureTest, GroupStateResumes) {
  const std::string yaml = R"(
sparsity:
  - {algorithm: set, sparsity: 0.5, param_filter: "fc1.weight", drop_fraction: 0.5}
  - {algorithm: rigl, sparsity: 0.75, param_filter: "fc2.weight", drop_fraction: 0.5}
)";
  TestModel whole, second;
  const auto straight = from_yaml(yaml), resumed = from_yaml(yaml);
  whole.apply(*straight);
  second.apply(*resumed);
  for (int i = 0; i < 3; ++i) whole.step();
  second.model.load_state_dict(whole.model.state_dict());
  second.optimizer->load_state_dict(whole.optimizer->state_dict());
  resumed->load_state_dict(straight->state_dict());
  for (int i = 0; i < 3; ++i) {
    whole.step();
    second.step();
  }
  for (const char* name : {"fc1.weight", "fc2.weight"}) {
    EXPECT_EQ(whole.weight(name).mask(), second.weight(name).mask());
    EXPECT_EQ(whole.weight(name).to_dense().to_vector(),
              second.weight(name).to_dense().to_vector());
  }
}

TEST(GroupTest, AutoupdateOffStopsAllEntries) {
  auto group = Group();
  group.add("fc1.weight", std::make_unique<Set>(DynamicOptions{.sparsity = 0.5}));
  group.autoupdate = false;
  TestModel t;
  t.apply(group);
  const ByteArray before = t.weight().mask();
  t.step();
  EXPECT_EQ(t.weight().mask(), before);
  EXPECT_EQ(group.algorithms()[0]->step(), 0);
  group.update(*t.optimizer);
  EXPECT_NE(t.weight().mask(), before);
}

TEST(GroupTest, RefusesNestingAndEmptiness) {
  Group group;
  expect_throws<StateError>([&] { group.add("*", std::make_unique<Group>()); }, "extend()");
  TestModel t;
  expect_throws<StateError>([&] { t.model.apply(group); }, "has no algorithms");
}

struct BadConfig {
  const char* yaml;
  const char* message;
};

class ConfigureErrors : public testing::TestWithParam<BadConfig> {};

TEST_P(ConfigureErrors, SaysWhereAndWhat) {
  expect_throws<ConfigError>([] { from_yaml(GetParam().yaml); }, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Messages, ConfigureErrors,
    testing::Values(
        BadConfig{"sparsity: 1.0", "c.yaml:1:11: sparsity: expected a sparsity in [0, 1)"},
        BadConfig{"sparsity: high", "expected a number, a map or a list of maps, found 'high'"},
        BadConfig{"sparsity: {}", "sparsity: static needs `sparsity`"},
        BadConfig{"sparsity: []", "expected at least one entry"},
        BadConfig{"sparsity: {algorithm: rigel, sparsity: 0.9}",
                  "c.yaml:1:23: sparsity.algorithm: unknown sparsity algorithm 'rigel'; did you "
                  "mean 'rigl'?"},
        BadConfig{"sparsity: {algorithm: set, type: set}", "mean the same"},
        BadConfig{"sparsity: {algorithm: static, sparsity: 0.9, spare: 1}",
                  "sparsity.spare: unknown key 'spare'"},
        BadConfig{"sparsity: {algorithm: static, sparsty: 0.9}",
                  "unknown key 'sparsty'; did you mean 'sparsity'?"},
        BadConfig{"sparsity: {sparsity: 1.5}", "sparsity.sparsity: expected a number from 0.0 to"},
        BadConfig{"sparsity: {sparsity: 0.5, schedule: 0.4}", "are both given"},
        BadConfig{"sparsity: {algorithm: gmp, sparsity: 0.5}", "use algorithm 'static'"},
        BadConfig{"sparsity: {algorithm: set, sparsity: 0.5, drop_fraction: 2}",
                  "sparsity.drop_fraction: expected a number from 0.0 to 1.0, found '2'"},
        BadConfig{"sparsity: {algorithm: set, sparsity: 0.5, update: {freq: 0}}",
                  "sparsity.update.freq: expected an integer of at least 1, found '0'"},
        BadConfig{"sparsity: {algorithm: set, sparsity: 0.5, update: {freq: 1, stop: 0}}",
                  "sparsity.update.stop: expected a step after start (0), found '0'"},
        BadConfig{"sparsity: {algorithm: set, sparsity: {type: cosin, init: 1, half_period: 2}}",
                  "did you mean 'cosine'?"},
        BadConfig{"sparsity: {sparsity: 0.5, init_method: tpok}", "unknown init_method 'tpok'"},
        BadConfig{"sparsity: {sparsity: 0.5, distribution: ekr}", "unknown distribution 'ekr'"},
        BadConfig{"sparsity: {sparsity: 0.5, balance_in_groups: 2, balance_out_groups: 2}",
                  "are both given"},
        BadConfig{"sparsity: {sparsity: 0.5, balance_in_groups: 0}", "at least 1, found '0'"},
        BadConfig{"sparsity: {sparsity: 0.5, param_filter: []}",
                  "a glob or a list of at least one"},
        BadConfig{"sparsity: [0.5]", "sparsity.0: expected a map with `algorithm`"}));

}  // namespace
}  // namespace lacuna
