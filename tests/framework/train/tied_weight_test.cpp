// `tied_to` in a model's description: whose weight it is, what is refused, and a run with one.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/layers/tied_linear.h"
#include "throws.h"

namespace lacuna::tied_weight_test {
namespace {

std::unique_ptr<Sequential> build(const std::string& yaml, const Shape& shape = {6}) {
  register_builtins();
  const Config section = parse_yaml(yaml, "m.yaml");
  auto model = build_model(model_layers(section), shape);
  section.require_all_read();
  return model;
}

std::vector<std::string> parameters(const Sequential& model) {
  std::vector<std::string> names;
  for (const auto& p : model.parameters()) names.push_back(p->name() + p->shape().to_string());
  return names;
}

void refuses(const std::string& yaml, const std::string& message) {
  expect_throws<ConfigError>([&] { build(yaml); }, message);
}

TEST(TiedWeight, IsFoundByItsFullPathInGroups) {
  const auto model = build(
      "[{type: sequential, name: a, repeat: 2, layers: [{type: residual, layers: [{type: linear, "
      "name: b.c, out_features: 6}]}]}, {type: sequential, name: d, layers: [{type: linear, name: "
      "head, tied_to: a.1.b.c}]}]");
  EXPECT_EQ(parameters(*model), (std::vector<std::string>{"a.0.b.c.weight[6, 6]", "a.0.b.c.bias[6]",
                                                          "a.1.b.c.weight[6, 6]", "a.1.b.c.bias[6]",
                                                          "d.head.bias[6]"}));
  for (Module* module : model->modules()) {
    const auto* tied = dynamic_cast<const TiedLinear*>(module);
    if (tied == nullptr) continue;
    EXPECT_EQ(tied->path(), "d.head");
    EXPECT_EQ(tied->tied_weight(), model->parameter("a.1.b.c.weight"));
    EXPECT_EQ(tied->description(), "tied to a.1.b.c");
  }
}

TEST(TiedWeight, SaysWhatComesOutAndMayHaveABias) {
  register_builtins();
  const Config section = parse_yaml(
      "[{type: linear, name: in, out_features: 4}, {type: linear, out_features: 6}, {type: linear, "
      "name: head, tied_to: in, bias: false, in_features: 6}]",
      "m.yaml");
  const auto model = build_model(model_layers(section), {6});
  EXPECT_EQ(model->output_shape({6}), (Shape{4}));
  EXPECT_EQ(parameters(*model).back(), "linear2.bias[6]");
  EXPECT_EQ(section.items()[2].get("out_features").text(), "4");
  section.require_all_read();
}

TEST(TiedWeight, TheModelsFanInIsNotItsOwn) {
  EXPECT_NO_THROW(
      build("{init_fan_in: nonzeros, layers: [{type: linear, name: in, out_features: 6}, {type: "
            "linear, tied_to: in}]}"));
}

TEST(TiedWeight, RefusesPathsThatLeadNowhere) {
  const std::string before = "[{type: linear, name: tokens, out_features: 6}, relu, ";
  refuses(before + "{type: linear, tied_to: token}]",
          "m.yaml:1:79: 2.tied_to: no layer 'token' comes before this one; did you mean 'tokens'?");
  refuses(before + "{type: linear, tied_to: relu1}]",
          "2.tied_to: layer 'relu1' (relu) has no parameter `weight` of its own");
  refuses(
      "[{type: linear, name: head, tied_to: later}, {type: linear, name: later, out_features: "
      "6}]",
      "m.yaml:1:38: 0.tied_to: no layer 'later' comes before this one");
  refuses(before + "{type: linear, name: a, tied_to: tokens}, {type: linear, tied_to: a}]",
          "3.tied_to: layer 'a' (linear) has no parameter `weight` of its own");
  refuses(before + "{type: relu, tied_to: tokens}]", "tied_to");
}

TEST(TiedWeight, RefusesSizesThatAreNotItsOwn) {
  const std::string before = "[{type: linear, name: in, out_features: 4}, ";
  refuses(before + "{type: linear, name: head, tied_to: in}]",
          "m.yaml:1:45: 1: layer 'head' (linear) does not fit layer 'in' (linear) at m.yaml:1:2, "
          "which gives shape [4] per example: the weight 'in.weight' of shape "
          "[4, 6], which it is tied to, needs examples of shape [..., 6], found [4]");
  refuses(before +
              "{type: linear, out_features: 6}, {type: linear, name: head, tied_to: in, "
              "out_features: 5}]",
          "2.out_features: is 5, but the weight that 'head' is tied to, 'in.weight', has shape [4, "
          "6]");
  refuses("[{type: layer_norm, name: n}, {type: linear, tied_to: n}]",
          "only a weight of shape [out_features, in_features] can be shared, 'n.weight' has [6]");
}

TEST(TiedWeight, RefusesWhatOnlyAnOwnWeightHas) {
  const std::string before =
      "[{type: linear, name: in, out_features: 6}, {type: linear, tied_to: in, ";
  refuses(before + "init: zeros}]", "1.init: the weight is initialized by 'in'");
  refuses(before + "init_fan_in: 3}]", "1.init_fan_in: the weight is initialized by 'in'");
  refuses(before + "trainable: false}]",
          "1.trainable: the weight belongs to 'in'; freeze it there");
  refuses(before + "bais: false}]", "bais");
}

TEST(TiedWeight, TrainsAndIsSavedOnce) {
  const Config config = parse_yaml(
      "{data: {type: synthetic, features: 6, classes: 6, train_size: 64, test_size: 16}, model: "
      "[{type: linear, name: in, out_features: 6}, relu, {type: linear, name: mid, out_features: "
      "6}, {type: linear, name: head, tied_to: in}], optimizer: {type: sgd, lr: 0.1}, sparsity: "
      "0.5, train: {steps: 2}}",
      "run.yaml");
  const auto experiment = build_experiment(config);
  EXPECT_EQ(experiment->numel(), 6 * 6 + 6 + 6 * 6 + 6 + 6);
  EXPECT_TRUE(experiment->model->parameter("in.weight")->pattern()->is_dense());
  EXPECT_FALSE(experiment->model->parameter("mid.weight")->pattern()->is_dense());
  const StateDict state = experiment->state_dict();
  EXPECT_TRUE(state.contains("model/in.weight"));
  EXPECT_FALSE(state.contains("model/head.weight"));
  const auto again = rebuild_model(experiment->config, state, {6});
  EXPECT_EQ(again->parameter("in.weight")->to_dense().to_vector(),
            experiment->model->parameter("in.weight")->to_dense().to_vector());
}

TEST(ModelBuilder, QkvIsSquareUnlessItSaysOtherwise) {
  EXPECT_EQ(
      parameters(*build("[{type: qkv, bias: false}]")),
      (std::vector<std::string>{"query.weight[6, 6]", "key.weight[6, 6]", "value.weight[6, 6]"}));
  const auto model = build(
      "[{type: qkv, names: [q, k, v], out_features: 8, kv_features: 2, bias: false}]", {3, 6});
  EXPECT_EQ(parameters(*model),
            (std::vector<std::string>{"q.weight[8, 6]", "k.weight[2, 6]", "v.weight[2, 6]"}));
  EXPECT_EQ(model->output_shape({3, 6}), (Shape{3, 12}));
  refuses("[{type: qkv, init: {type: linear}}]", "init");
  refuses("[{type: qkw}]", "unknown layer 'qkw'; did you mean 'qkv'?");
}

TEST(ModelBuilder, TheLastLayersSizeIsTheDataWhereItIsLeftOut) {
  const Config config = parse_yaml(
      "{data: {type: synthetic, features: 6, classes: 5, train_size: 64, test_size: 16}, model: "
      "[{type: linear, name: in, out_features: 4}, relu, {type: linear, name: head}], optimizer: "
      "{type: sgd, lr: 0.1}, train: {steps: 2}}",
      "run.yaml");
  const auto experiment = build_experiment(config);
  EXPECT_EQ(experiment->model->parameter("head.weight")->shape(), (Shape{5, 4}));
  // It stands in the run's configuration, so that the model can be built without the data.
  const auto again = rebuild_model(parse_yaml(experiment->config.to_yaml(), "saved"),
                                   experiment->state_dict(), {6});
  EXPECT_EQ(again->parameter("head.weight")->shape(), (Shape{5, 4}));
}

// A preset that needs no tokens.
TEST(ModelBuilder, BuildsPresetsAndSaysWhichOneAnErrorIsIn) {
  const Config section = parse_yaml("{type: cifar_resnet, depth: 8, width: 4}", "m.yaml");
  register_builtins();
  const auto model = build_model(model_layers(section, {.num_classes = 3}), {3, 8, 8});
  EXPECT_EQ(model->parameter("linear.weight")->shape(), (Shape{3, 16}));
  EXPECT_EQ(model->parameter("layer2.0.conv1.weight")->shape(), (Shape{8, 4, 3, 3}));
  section.require_all_read();
  expect_throws<ConfigError>(
      [] {
        build_model(model_layers(parse_yaml("{type: cifar_resnet, width: 0}", "m.yaml")),
                    {3, 8, 8});
      },
      "m.yaml:1:29");
  expect_throws<ConfigError>(
      [] { build_model(model_layers(parse_yaml("{type: cifar_resnet}", "m.yaml")), {64}); },
      "; within the preset 'cifar_resnet' at m.yaml:1:1");
}

}  // namespace
}  // namespace lacuna::tied_weight_test
