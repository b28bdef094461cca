#include "lacuna/optimizers/optimizer_registry.h"

#include <gmock/gmock.h>

#include "lacuna/framework/io/yaml.h"
#include "optimizers/test_parameters.h"
#include "throws.h"

namespace lacuna::optimizer_registry_test {
namespace {

std::vector<ParameterPtr> parameters() {
  return {make_parameter("fc1.weight", {1.0f}), make_parameter("fc1.bias", {1.0f})};
}

std::unique_ptr<Optimizer> make(const std::string& yaml) {
  const Config config = parse_yaml(yaml, "run.yaml");
  auto optimizer = make_optimizer(config, parameters());
  config.require_all_read();
  return optimizer;
}

TEST(OptimizerRegistry, HasTheBuiltInOnesAndAUsersOwn) {
  OptimizerRegistry registry("optimizer");
  register_optimizers(registry);
  EXPECT_THAT(registry.names(), testing::ElementsAre("adam", "adamw", "sgd"));
  EXPECT_TRUE(optimizer_registry().contains("adam"));
}

TEST(OptimizerRegistry, ReadsEveryKey) {
  const auto sgd = make(R"(
type: sgd
lr: {type: multi_step, init: 0.5, milestones: [10], gamma: 0.5}
warmup: 2
momentum: 0.9
dampening: 0.0
nesterov: true
weight_decay: 0.1
clip_norm: 1.0
groups:
  - {params: "*.bias", weight_decay: 0}
  - {params: ["fc1.w*", "*t"], lr: [0.1, 0.2]}
)");
  EXPECT_EQ(sgd->type(), "sgd");
  EXPECT_EQ(sgd->lr(), 0.25);
  EXPECT_EQ(make("{type: adam, lr: 0.1, betas: [0.8, 0.9], eps: 1e-6}")->type(), "adam");
  EXPECT_EQ(make("{type: adamw, lr: 0.1}")->lr(), 0.1);
  EXPECT_EQ(make("{type: adam, lr: {type: linear, init: 0.5, slope: 0}}")->lr(), 0.5);
}

TEST(OptimizerRegistry, WritesDefaultsIntoTheConfig) {
  const Config adam = parse_yaml("type: adam", "run.yaml");
  make_optimizer(adam, parameters());
  EXPECT_EQ(adam.to_json(), R"({"type": "adam", "lr": 0.001, "weight_decay": 0.0, "warmup": 0, )"
                            R"("betas": [0.9, 0.999], "eps": 1e-08, "regrown": "shared"})");
  const Config adamw = parse_yaml("type: adamw", "run.yaml");
  make_optimizer(adamw, parameters());
  EXPECT_EQ(adamw.at("weight_decay").as<double>(), 0.01);
  const Config sgd = parse_yaml("{type: sgd, lr: 1}", "run.yaml");
  make_optimizer(sgd, parameters());
  EXPECT_EQ(sgd.to_json(),
            R"({"type": "sgd", "lr": 1, "weight_decay": 0.0, "warmup": 0, "momentum": 0.0, )"
            R"("dampening": 0.0, "nesterov": false})");
}

TEST(OptimizerRegistry, WrongOptionsGetTheirPosition) {
  const auto expect_message = [](const std::string& yaml, const std::string& message) {
    expect_throws<ConfigError>([&] { make(yaml); }, message);
  };
  expect_message("type: adan",
                 "run.yaml:1:7: type: unknown optimizer 'adan'; did you mean 'adam'?");
  expect_message("lr: 0.1", "type: a required key is missing");
  expect_message("type: sgd", "run.yaml:1:1: lr: a required key is missing");
  expect_message("type: sgd\nlr: -1",
                 "run.yaml:2:5: lr: expected a finite number of at least 0.0, found -1.0");
  expect_message("type: sgd\nlr: fast", "run.yaml:2:5: lr: expected a number, a list of numbers");
  expect_message("type: sgd\nlr: 1\nmomentum: -0.5",
                 "run.yaml:3:11: momentum: expected a finite number of at least 0.0, found -0.5");
  expect_message("type: sgd\nlr: 1\nnesterov: true",
                 "run.yaml:3:11: nesterov: needs momentum above 0 and dampening 0");
  expect_message("type: adam\nbetas: [0.9]",
                 "run.yaml:2:8: betas: expected a list of two numbers, found a list of 1 value");
  expect_message("type: adam\nbetas: [0.9, 2]",
                 "run.yaml:2:8: betas: expected a number from 0 to below 1, found 2.0");
  expect_message("type: adam\neps: small", "run.yaml:2:6: eps: expected a number, found 'small'");
  expect_message("type: adam\nclip_norm: 0",
                 "run.yaml:2:12: clip_norm: expected a number above 0, found 0.0");
  expect_message("type: adam\nwarmup: 1.5",
                 "run.yaml:2:9: warmup: expected an integer, found '1.5'");
  expect_message("type: adam\nmomentum: 0.9", "run.yaml:2:11: momentum: unknown key 'momentum'");
}

TEST(OptimizerRegistry, WrongGroupsGetTheirPosition) {
  const auto expect_message = [](const std::string& groups, const std::string& message) {
    expect_throws<ConfigError>([&] { make("type: adam\ngroups:\n" + groups); }, message);
  };
  expect_message(" - {params: \"*\"}\n - {params: fc1.bais, lr: 0}",
                 "run.yaml:4:13: groups.1.params: 'fc1.bais' matches no parameter; did you mean "
                 "'fc1.bias'?");
  expect_message(" - params: \"*\"\n   lr: -1",
                 "run.yaml:4:8: groups.0.lr: expected a finite number of at least 0.0, found -1.0");
  expect_message(" - lr: 1", "groups.0.params: a required key is missing");
  expect_message(" - params: []", "groups.0.params: expected at least one glob");
  expect_message(" - params: \"*\"\n   weight_decai: 1",
                 "unknown key 'weight_decai'; did you mean 'weight_decay'?");
  expect_message(" params: \"*\"", "groups: expected a list, found a map");
}

}  // namespace
}  // namespace lacuna::optimizer_registry_test
