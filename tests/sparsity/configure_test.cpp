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

namespace lacuna::configure_test {
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
}

// As in the configurations that the zoo ships for a GPT-3 of 125 million parameters: keys, order,
// quotes, comments and filters as there.
constexpr const char* kZooRigL = R"(
sparsity:
  sparsity: 0.75
  init_method: random
  algorithm: rigl
  drop_fraction:
    type: cosine    # anneal drop fraction with cosine schedule
    init: 0.3
    half_period: 3584  # set half-period to schedule at 75% of max_steps
  update:
    freq: 100
    stop: 3584
  param_filter:
  - '*proj_[qkv]_dense_layer.weight'
  - '*proj_output_dense_layer.weight'
  - '*linear_layer.weight'
)";

TEST(ConfigureTest, ModelZooFiltersChooseItsParameters) {
  Sequential model;
  for (const char* name : {"proj_q_dense_layer", "proj_k_dense_layer", "proj_v_dense_layer",
                           "proj_output_dense_layer", "linear_layer", "lm_head"}) {
    model.add<Linear>(name, {.in_features = 8, .out_features = 8});
  }
  model.initialize(0);
  const auto algorithm = from_yaml(kZooRigL);
  model.apply(*algorithm);
  EXPECT_EQ(algorithm->parameters().size(), 5u);
  for (const ParameterPtr& parameter : algorithm->parameters()) {
    EXPECT_EQ(parameter->pattern()->nnz(), 16) << parameter->name();
  }
  EXPECT_TRUE(model.parameter("lm_head.weight")->pattern()->is_dense());
  const std::vector<PlannedParameter> plan = algorithm->plan(4778);
  EXPECT_EQ(plan[0].update_steps.front(), 100);
  EXPECT_EQ(plan[0].update_steps.back(), 3500);
}

TEST(ConfigureTest, ModelZooSectionsOfEveryKind) {
  const std::vector<std::pair<std::string, std::string>> sections = {
      {"0.75", "static"},
      {"{sparsity: 0.75}", "static"},
      {"{algorithm: static, sparsity: 0.75, init_method: topk}", "static"},
      {"{type: static, sparsity: 0.75, init_method: from_zeros}", "static"},
      {"{algorithm: Static, sparsity: 0.75, init_method: checkerboard}", "static"},
      {"{algorithm: SET, sparsity: 0.75, init_method: \"random\", drop_fraction: 0.1, "
       "update: {freq: 10, start: 5, stop: 100}, balance_out_groups: 4}",
       "set"},
      {"{algorithm: RigL, sparsity: [0.3, 0.4, 0.5], update: {steps: [10, 20, 30]}, "
       "balance_in_groups: 2}",
       "rigl"},
      {"{algorithm: rigl, schedule: {type: Linear, init: 0.3, slope: 0.01}}", "rigl"},
      {"{algorithm: gmp, schedule: {type: exp, init: 0.1, gamma: -0.01}, update: {freq: 100}}",
       "gmp"},
      {"{algorithm: GMP, sparsity: {type: power, init: 0.1, beta: 1.01}, param_filter: 'fc*'}",
       "gmp"},
      {"{algorithm: gmp, sparsity: {type: Cycling, values: [0.1, 0.2]}}", "gmp"},
      {"[{algorithm: static, sparsity: 0.5, param_filter: 'fc1.*'}, "
       "{algorithm: set, sparsity: 0.5, param_filter: ['fc2.*', 'fc3.*']}]",
       "group"}};
  for (const auto& [section, type] : sections) {
    EXPECT_EQ(from_yaml("sparsity: " + section)->type(), type) << section;
  }
}

TEST(ConfigureTest, InitMethodsFromAConfigurationMakeTheirMasks) {
  for (const auto& [name, nnz] : std::vector<std::pair<std::string, int64_t>>{{"random", 48},
                                                                              {"balanced", 48},
                                                                              {"topk", 48},
                                                                              {"checkerboard", 48},
                                                                              {"from_zeros", 10}}) {
    TestModel t;
    std::vector<float> values(192);
    for (size_t i = 0; i < 10; ++i) values[i * 7] = 1.0f;
    if (name == "from_zeros") t.weight().assign(Tensor::from(Shape{16, 12}, values));
    const auto algorithm = from_yaml(
        "sparsity: {sparsity: 0.75, param_filter: fc1.weight, "
        "init_method: " +
        name + "}");
    t.apply(*algorithm);
    EXPECT_EQ(t.weight().pattern()->nnz(), nnz) << name;
  }
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

TEST(GroupTest, IsAppliedOnceAndThenClosed) {
  Group group;
  group.add("fc1.weight", std::make_unique<Set>(DynamicOptions{.sparsity = 0.5}));
  TestModel t;
  t.apply(group);
  expect_throws<StateError>([&] { t.model.apply(group); },
                            "sparsity algorithm 'group' has been applied to a model already");
  expect_throws<StateError>(
      [&] { group.add("*", std::make_unique<Set>(DynamicOptions{.sparsity = 0.5})); },
      "this group has been applied to a model already");
  expect_throws<StateError>([&] { group.target_sparsity(t.weight("fc2.weight")); },
                            "parameter 'fc2.weight' does not belong to sparsity algorithm 'group'");
  expect_throws<CheckpointError>(
      [&] { group.load_state_dict(group.algorithms()[0]->state_dict()); },
      "the checkpoint holds the state of sparsity algorithm 'set', the run uses 'group'");
}

TEST(GroupTest, AnnouncesWhatItsEntriesAnnounce) {
  const auto group = from_yaml(R"(
sparsity:
  - {algorithm: static, sparsity: 0.5, param_filter: "fc1.weight"}
  - {algorithm: set, sparsity: 0.75, param_filter: "fc2.weight"}
)");
  std::vector<std::string> calls;
  group->register_target_sparsity_hook(
      [&](SparsityAlgorithm& algorithm, const std::string& names, double target) {
        calls.push_back(std::string(algorithm.type()) + " " + names + " " + Config(target).text());
      });
  group->register_computed_sparsity_hook(
      [&](SparsityAlgorithm& algorithm, const Parameter& parameter, double actual) {
        calls.push_back(std::string(algorithm.type()) + " " + parameter.name() + " is " +
                        Config(actual).text());
      });
  TestModel t;
  t.apply(*group);
  const std::vector<std::string> of_set = {"set 'fc2.weight' 0.75", "set fc2.weight is 0.75"};
  EXPECT_EQ(calls, (std::vector<std::string>{"static 'fc1.weight' 0.5", "static fc1.weight is 0.5",
                                             of_set[0], of_set[1]}));
  calls.clear();
  t.step();
  EXPECT_EQ(calls, of_set);
}

TEST(GroupTest, ExtendsByTheEntriesOfAnother) {
  Group group, other;
  group.add("fc1.weight", std::make_unique<Set>(DynamicOptions{.sparsity = 0.5}));
  other.add("*weight", std::make_unique<Set>(DynamicOptions{.sparsity = 0.75}));
  group.extend(std::move(other));
  TestModel t;
  t.apply(group);
  EXPECT_EQ(t.weight("fc1.weight").pattern()->nnz(), 96);
  EXPECT_EQ(t.weight("fc2.weight").pattern()->nnz(), 16);
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
        BadConfig{"sparsity: {algorithm: saliency, sparsity: 0.5}",
                  "sparsity: saliency: a constant sparsity never changes the mask"},
        BadConfig{"sparsity: {algorithm: gmp, sparsty: 0.5, pattern: {type: nm, n: 2, m: 4}}",
                  "unknown key 'sparsty'; did you mean 'sparsity'?"},
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
        BadConfig{"sparsity: [0.5]", "sparsity.0: expected a map with `algorithm`"},
        BadConfig{"sparsity: {sparsity: 0.5, init_method: [random]}",
                  "sparsity.init_method: expected text, found a list of 1 value"},
        BadConfig{"sparsity: {sparsity: 0.5, balance_out_groups: 0}", "at least 1, found '0'"},
        BadConfig{"sparsity: {algorithm: rigl, update: {freq: 10}}",
                  "c.yaml:1:11: sparsity: rigl needs `sparsity` (or `density`, or `fan_in`)"},
        BadConfig{"sparsity: {algorithm: set, sparsty: 0.5}",
                  "unknown key 'sparsty'; did you mean 'sparsity'?"},
        BadConfig{"sparsity: {algorithm: snfs}", "snfs needs `sparsity`"},
        BadConfig{"sparsity: {algorithm: snip}", "snip needs `sparsity`"},
        BadConfig{"sparsity: {algorithm: ste}", "ste needs `sparsity`"},
        BadConfig{"sparsity: {algorithm: acdc}", "acdc needs `sparsity`"},
        BadConfig{"sparsity: {algorithm: gmp}", "use algorithm 'static', or give a sparsity"},
        BadConfig{"sparsity: {algorithm: snip, sparsity: 0.5, scope: local}",
                  "sparsity.scope: expected 'global' or 'layer', found 'local'"},
        BadConfig{"sparsity: {algorithm: snip, sparsity: 0.5, scope: global, distribution: erk}",
                  "sparsity.scope: a global competition cannot be combined with distribution, "
                  "groups or a pattern"},
        BadConfig{"sparsity: {algorithm: snfs, sparsity: 0.5, momentum: 1}",
                  "sparsity.momentum: expected a number from 0.0 to"},
        BadConfig{"sparsity: {algorithm: gmp, sparsity: 0.5, drop_fraction: 0.3}",
                  "use algorithm 'static'"},
        BadConfig{"sparsity: {algorithm: static, sparsity: [0.1, 0.2]}",
                  "c.yaml:1:11: sparsity: static: the sparsity must be a constant"}));

// What they refuse is not offered as a key.
TEST(ConfigureTest, OneShotAlgorithmsOfferNoInitMethod) {
  for (const char* name : {"magnitude", "wanda", "sparsegpt", "admm"}) {
    const std::string entry = std::string("sparsity: {algorithm: ") + name + ", sparsity: 0.5";
    try {
      from_yaml(entry + ", spam: 1}");
      FAIL() << name;
    } catch (const ConfigError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("unknown key 'spam'; valid names: algorithm"), std::string::npos) << text;
      EXPECT_NE(text.find("granularity"), std::string::npos) << text;
      EXPECT_EQ(text.find("init_method"), std::string::npos) << text;
    }
    expect_throws<ConfigError>([&] { from_yaml(entry + ", init_method: topk}"); },
                               std::string(name) + " takes no `init_method`");
  }
}

// So it is of semi_sparse, which has no choice of its first mask, nor of how many weights a
// parameter gets.
TEST(ConfigureTest, SemiSparseOffersTheKeysThatItTakes) {
  const std::string entry = "sparsity: {algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}";
  try {
    from_yaml(entry + ", spam: 1}");
    FAIL();
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(
        text.find("unknown key 'spam'; valid names: algorithm, decay, density, every, layout, "
                  "param_filter, pattern, "),
        std::string::npos)
        << text;
    for (const char* refused : {"init_method", "distribution", "balance_", "fan_in"}) {
      EXPECT_EQ(text.find(refused), std::string::npos) << text;
    }
  }
  expect_throws<ConfigError>([&] { from_yaml(entry + ", distribution: erk}"); },
                             "semi_sparse takes no `distribution`");
  expect_throws<ConfigError>([&] { from_yaml(entry + ", fan_in: 3}"); }, "fan_in");
  expect_throws<ConfigError>(
      [] { from_yaml("sparsity: {algorithm: semi_sparse, patern: {type: nm, n: 2, m: 4}}"); },
      "unknown key 'patern'; did you mean 'pattern'?");
  expect_throws<ConfigError>([&] { from_yaml(entry + ", sparsity: 0}"); },
                             "has a sparsity of 0.5: leave `sparsity` out");
}

// A value that --set gave is at fault, and not the line of the file that it was put into.
TEST(ConfigureTest, AnErrorOfAValueFromTheCommandLineNamesThatAlone) {
  register_builtins();
  Config config = parse_yaml("sparsity: {algorithm: wanda, sparsity: 0.5}", "c.yaml");
  apply_override(config, "sparsity.sparsity=1.5");
  try {
    configure(config.at("sparsity"), 0);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_TRUE(std::string(error.what())
                    .starts_with("--set sparsity.sparsity=1.5: sparsity.sparsity: expected "))
        << error.what();
  }
}

}  // namespace
}  // namespace lacuna::configure_test
