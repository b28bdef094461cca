#include "lacuna/framework/train/model_builder.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "throws.h"

namespace lacuna::model_builder_test {
namespace {

std::unique_ptr<Sequential> build(const std::string& yaml, const Shape& shape = {28, 28}) {
  register_builtins();
  return build_model(model_layers(parse_yaml(yaml, "m.yaml")), shape);
}

std::vector<std::string> parameters(const Sequential& model) {
  std::vector<std::string> names;
  for (const auto& p : model.parameters()) names.push_back(p->name() + p->shape().to_string());
  return names;
}

TEST(ModelBuilder, NamesLayersByTypeAndCountAndPassesShapesOn) {
  const auto model = build(
      "[flatten, {type: linear, out_features: 5}, relu, {type: linear, out_features: 3}, "
      "{type: linear, name: head, out_features: 2, bias: false}]");
  EXPECT_EQ(parameters(*model), (std::vector<std::string>{"linear1.weight[5, 784]",
                                                          "linear1.bias[5]", "linear2.weight[3, 5]",
                                                          "linear2.bias[3]", "head.weight[2, 3]"}));
  EXPECT_EQ(model->output_shape({28, 28}), (Shape{2}));
  EXPECT_EQ(model->children()[0].first, "flatten1");
}

TEST(ModelBuilder, TakesTheLayersFromAListOrAMap) {
  EXPECT_EQ(build("{layers: [flatten]}")->children().size(), 1u);
  expect_throws<ConfigError>([] { build("{init_from: x}"); },
                             "m.yaml:1:1: layers: a required key is missing");
}

TEST(ModelBuilder, GivesTheModelsFanInToLinearLayersThatHaveNone) {
  register_builtins();
  const Config model = parse_yaml(
      "{init_fan_in: nonzeros, layers: [flatten, {type: linear, out_features: 5}, "
      "{type: linear, out_features: 5, init_fan_in: 3}, {type: sequential, layers: [relu, "
      "{type: linear, out_features: 2}]}]}",
      "m.yaml");
  build_model(model_layers(model), Shape{28, 28});
  model.require_all_read();
  const Config layers = model.at("layers");
  EXPECT_EQ(layers.items()[1].at("init_fan_in").text(), "nonzeros");
  EXPECT_EQ(layers.items()[2].at("init_fan_in").text(), "3");
  EXPECT_EQ(layers.items()[3].at("layers").items()[1].at("init_fan_in").text(), "nonzeros");
  expect_throws<ConfigError>(
      [] { build("{init_fan_in: some, layers: [flatten, {type: linear, out_features: 5}]}"); },
      "m.yaml:1:15: layers.1.init_fan_in: expected all, nonzeros or a number of inputs");
}

TEST(ModelBuilder, FreezesLayersAndGroupsOfThem) {
  const auto model = build(
      "- flatten\n- {type: linear, name: fc1, out_features: 4, trainable: false}\n"
      "- {type: sequential, name: tail, trainable: false, layers: [{type: linear, name: fc2, "
      "out_features: 3, trainable: true}]}\n"
      "- {type: linear, name: fc3, out_features: 2, trainable: true}\n");
  for (const ParameterPtr& parameter : model->parameters()) {
    EXPECT_EQ(parameter->trainable, parameter->name().starts_with("fc3")) << parameter->name();
  }
  EXPECT_FALSE(model->children()[1].second->trainable());
  EXPECT_FALSE(model->children()[2].second->trainable());
  expect_throws<ConfigError>(
      [] { build("[flatten, {type: linear, out_features: 4, trainable: some}]"); },
      "1.trainable: expected");
}

TEST(ModelBuilder, NestsSequentials) {
  const std::string yaml =
      "- {type: sequential, name: body, layers: [flatten, {type: linear, out_features: 4}]}\n"
      "- {type: sequential, layers: [{type: linear, out_features: 2}]}\n";
  EXPECT_EQ(parameters(*build(yaml)),
            (std::vector<std::string>{"body.linear1.weight[4, 784]", "body.linear1.bias[4]",
                                      "sequential2.linear1.weight[2, 4]",
                                      "sequential2.linear1.bias[2]"}));
}

TEST(ModelBuilder, NamesBothLayersAndShapesWhenTheyDoNotFit) {
  expect_throws<ConfigError>(
      [] {
        build(
            "- flatten\n- {type: linear, out_features: 4}\n"
            "- {type: linear, in_features: 5, out_features: 2}\n");
      },
      "m.yaml:3:3: 2: layer 'linear2' (linear) does not fit layer 'linear1' (linear) at "
      "m.yaml:2:3, "
      "which gives shape [4] per example: in_features is 5, but the examples that reach this layer "
      "have shape [4]");
  expect_throws<ConfigError>(
      [] {
        build(
            "- {type: sequential, name: a, layers: [flatten]}\n"
            "- {type: sequential, name: b, layers: [{type: layer_norm, features: 3}]}\n");
      },
      "layer 'b.layer_norm1' (layer_norm) does not fit layer 'a.flatten1' (flatten) at "
      "m.yaml:1:40, which gives shape [784]");
  expect_throws<ConfigError>([] { build("[{type: linear, out_features: 4}]", Shape()); },
                             "does not fit the data, which gives shape [] per example");
}

TEST(ModelBuilder, RefusesTwoLayersOfOneName) {
  expect_throws<ConfigError>([] { build("[{type: relu, name: a}, {type: relu, name: a}]"); },
                             "m.yaml:1:25: 1: two layers are named 'a'");
  expect_throws<ConfigError>([] { build("[{type: relu, name: relu2}, relu]"); },
                             "two layers are named 'relu2'; give one of them another `name`");
}

TEST(ModelBuilder, RefusesWhatIsNoLayer) {
  expect_throws<ConfigError>(
      [] { build("[[relu]]"); },
      "expected a layer: its type, or a map with `type`, found a list of 1 value");
  expect_throws<ConfigError>([] { build("[relo]"); },
                             "m.yaml:1:2: 0: unknown layer 'relo'; did you mean 'relu'?");
  expect_throws<ConfigError>([] { build("[linear]"); },
                             "m.yaml:1:2: 0.out_features: a required key is missing");
  expect_throws<ConfigError>([] { build("[]"); }, "expected at least one layer");
  expect_throws<ConfigError>([] { build("{layers: relu}"); }, "expected a list of layers");
}

}  // namespace
}  // namespace lacuna::model_builder_test
