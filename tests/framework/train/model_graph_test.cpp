// Models that are graphs: residuals, parallel branches, templates and repetitions, built.
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/model_builder.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/linear.h"
#include "lacuna/layers/residual.h"
#include "throws.h"

namespace lacuna::model_graph_test {
namespace {

using testing::ElementsAre;

std::unique_ptr<Sequential> build(const std::string& yaml, const Shape& shape = {12}) {
  register_builtins();
  const Config model = parse_yaml(yaml, "m.yaml");
  auto built = build_model(model_layers(model), shape);
  model.require_all_read();
  return built;
}

void refuses(const std::string& yaml, const std::string& message, const Shape& shape = {12}) {
  expect_throws<ConfigError>([&] { build(yaml, shape); }, message);
}

std::vector<std::string> parameters(const Sequential& model) {
  std::vector<std::string> names;
  for (const auto& p : model.parameters()) names.push_back(p->name() + p->shape().to_string());
  return names;
}

std::vector<std::string> descriptions(const Sequential& model, const Shape& shape) {
  std::vector<std::string> lines;
  for (const ModuleRow& row : module_rows(model, shape)) {
    if (row.module->description().empty()) continue;
    lines.push_back(row.module->path() + " " + row.module->description());
  }
  return lines;
}

// As a ResNet of linear layers: stages of blocks, the first of a stage narrower.
constexpr const char* kResNet = R"(
define:
  block:
    arguments: {width: null, when: differs}
    layers:
      - type: residual
        when: $when
        shortcut:
          - {type: linear, name: downsample.0, out_features: $width, bias: false}
          - {type: layer_norm, name: downsample.1}
        layers:
          - {type: linear, name: fc1, out_features: $(2 * width), bias: false}
          - relu
          - {type: linear, name: fc2, out_features: $width, bias: false}
      - relu
layers:
  - {type: block, name: layer1, repeat: 2, width: 12}
  - {type: block, name: layer2, repeat: 2, width: 6, first: {when: always}}
  - {type: parallel, layers: [{type: linear, name: head.a, out_features: 2}, relu]}
  - {type: linear, name: head.out, out_features: 10}
)";

TEST(ModelGraph, BuildsBlocksUnderTheNamesOfTheirLevel) {
  const auto model = build(kResNet);
  EXPECT_THAT(parameters(*model),
              ElementsAre("layer1.0.fc1.weight[24, 12]", "layer1.0.fc2.weight[12, 24]",
                          "layer1.1.fc1.weight[24, 12]", "layer1.1.fc2.weight[12, 24]",
                          "layer2.0.fc1.weight[12, 12]", "layer2.0.fc2.weight[6, 12]",
                          "layer2.0.downsample.0.weight[6, 12]", "layer2.0.downsample.1.weight[6]",
                          "layer2.0.downsample.1.bias[6]", "layer2.1.fc1.weight[12, 6]",
                          "layer2.1.fc2.weight[6, 12]", "head.a.weight[2, 6]", "head.a.bias[2]",
                          "head.out.weight[10, 8]", "head.out.bias[10]"));
  EXPECT_EQ(model->output_shape({12}), (Shape{10}));
}

TEST(ModelGraph, SaysWhichShortcutIsUsed) {
  EXPECT_THAT(
      descriptions(*build(kResNet), {12}),
      ElementsAre("layer1.0 template: block", "layer1.0.residual1 shortcut: identity",
                  "layer1.1 template: block", "layer1.1.residual1 shortcut: identity",
                  "layer2.0 template: block",
                  "layer2.0.residual1 shortcut: linear downsample.0, layer_norm downsample.1",
                  "layer2.1 template: block", "layer2.1.residual1 shortcut: identity"));
  EXPECT_THAT(descriptions(*build("[{type: residual, name: r, layers: [relu], shortcut: tanh, "
                                  "when: always}]"),
                           {12}),
              ElementsAre("r shortcut: tanh tanh1"));
}

TEST(ModelGraph, ComputesWhatItsPartsCompute) {
  const auto model = build(
      "[{type: residual, layers: [{type: linear, name: a, out_features: 12}, relu]}, {type: "
      "parallel, layers: [{type: linear, name: b, out_features: 3}, tanh]}]");
  model->initialize(3);
  Sequential same;
  same.add<Residual>("residual1").add<Linear>("a", {.in_features = 12, .out_features = 12});
  static_cast<Residual&>(*same.children()[0].second).add<ReLU>("relu1");
  same.initialize(3);
  const Tensor x = Tensor::full({4, 12}, 0.7f);
  const Variable y = same(x);
  const Variable z = (*model)(x);
  ASSERT_EQ(z.shape(), (Shape{4, 15}));
  EXPECT_FLOAT_EQ(z.value().to_vector()[3], std::tanh(y.value().to_vector()[0]));
  backward(sum(z));
  for (const ParameterPtr& p : model->parameters()) EXPECT_TRUE(p->has_gradient()) << p->name();
}

TEST(ModelGraph, NamesBothLinesOfAResidualWhoseShapesDiffer) {
  refuses(
      "- {type: linear, name: stem, out_features: 8}\n"
      "- type: residual\n"
      "  layers:\n"
      "    - {type: linear, name: fc1, out_features: 4}\n"
      "    - relu\n",
      "m.yaml:2:3: 1: layer 'residual1' (residual) adds shapes that differ: [4] per example, which "
      "its layers give (layer 'relu1' (relu) at m.yaml:5:7), and [8], which its input has (layer "
      "'stem' (linear) at m.yaml:1:3); make them equal, or give it a `shortcut`");
  refuses(
      "- type: residual\n"
      "  layers: [{type: linear, name: fc1, out_features: 4}]\n"
      "  shortcut: {type: linear, name: down, out_features: 5}\n",
      "m.yaml:1:3: 0: layer 'residual1' (residual) adds shapes that differ: [4] per example, which "
      "its layers give (layer 'fc1' (linear) at m.yaml:2:12), and [5], which its shortcut gives "
      "(layer 'down' (linear) at m.yaml:3:13)");
  refuses("[{type: residual, layers: [{type: linear, name: fc1, out_features: 4}]}]",
          "which its input has (the data)");
}

TEST(ModelGraph, NamesTheLinesOfBranchesThatDoNotFit) {
  refuses(
      "- type: parallel\n"
      "  layers:\n"
      "    - relu\n"
      "    - flatten\n",
      "m.yaml:1:3: 0: layer 'parallel1' (parallel) concatenates shapes that do not fit: [3, 4] per "
      "example, up to layer 'relu1' (relu) at m.yaml:3:7, and [12], of layer 'flatten1' (flatten) "
      "at m.yaml:4:7; only the last dimension may differ",
      {3, 4});
}

TEST(ModelGraph, NamesTheLinesOfLayersThatDoNotFitBehindGroups) {
  refuses(
      "[{type: parallel, layers: [relu, tanh]}, {type: layer_norm, features: 12}]",
      "layer 'layer_norm1' (layer_norm) does not fit layer 'parallel1' (parallel) at m.yaml:1:2, "
      "which gives shape [24] per example: features is 12");
  refuses("[{type: residual, layers: [relu]}, {type: layer_norm, features: 9}]",
          "does not fit layer 'residual1' (residual) at m.yaml:1:2, which gives shape [12]");
}

TEST(ModelGraph, SuggestsTemplatesAndGroupsForTypesThatAreUnknown) {
  refuses("{define: {basic_block: {layers: [relu]}}, layers: [basic_blok]}",
          "m.yaml:1:52: layers.0: unknown layer 'basic_blok'; did you mean 'basic_block'?");
  refuses("[{type: paralel, layers: [relu]}]",
          "0.type: unknown layer 'paralel'; did you mean "
          "'parallel'?");
  // A shortcut that is not used must be of a type that there is, too.
  refuses("[{type: residual, layers: [relu], shortcut: {type: tahn}}]",
          "m.yaml:1:52: 0.shortcut.type: unknown layer 'tahn'; did you mean 'tanh'?");
  refuses("{define: {relu: {layers: [tanh]}}, layers: [relu]}",
          "m.yaml:1:17: define.relu: there is already a layer named 'relu'");
}

TEST(ModelGraph, FindsUnknownKeysInTemplatesOnceAtTheirPosition) {
  const std::string define =
      "define:\n  block:\n    layers: [{type: linear, out_features: 12, bais: false}]\n";
  for (const char* uses : {"[block]", "[{type: block, repeat: 3}]",
                           "[{type: residual, layers: "
                           "[block]}]"}) {
    refuses(define + "layers: " + uses + "\n",
            "m.yaml:3:53: define.block.layers.0.bais: unknown key 'bais'; did you mean 'bias'?");
  }
  refuses("[{type: linear, out_features: 4, repeat: 2, first: {bais: false}}]",
          "unknown key 'bais'; did you mean 'bias'?");
  // Where it was written, and not where it was copied to.
  refuses("[{type: linear, out_features: 4, repeat: 2, first: {bais: false}}]",
          "m.yaml:1:59: 0.first.bais: unknown key 'bais'; did you mean 'bias'?");
  refuses("[{type: linear, out_features: 4, repeat: 2, first: {out_features: many}}]",
          "m.yaml:1:67: 0.first.out_features: expected an integer, found 'many'");
  refuses("[{type: residual, layers: [relu], shortcuts: tanh}]",
          "m.yaml:1:46: 0.shortcuts: unknown key 'shortcuts'; did you mean 'shortcut'?");
}

TEST(ModelGraph, SaysInWhichUseOfATemplateAnErrorIs) {
  refuses(
      "define:\n"
      "  block: {arguments: {width: null}, layers: [{type: linear, out_features: $width}]}\n"
      "layers:\n"
      "  - {type: block, name: a, width: 3}\n"
      "  - {type: block, name: b, width: 0}\n",
      "m.yaml:5:35: define.block.layers.0.out_features: expected an integer of at least 1, found "
      "'0'; within layer 'b' (block) at m.yaml:5:5");
}

TEST(ModelGraph, RefusesALayerBelowAParameter) {
  refuses("[{type: linear, name: fc, out_features: 4}, {type: relu, name: fc.weight}]",
          "m.yaml:1:45: 1: the path of the module 'fc.weight' is that of the parameter 'fc.weight' "
          "of the same model");
  refuses(
      "[{type: residual, layers: [{type: linear, name: fc, out_features: 4}], shortcut: [{type: "
      "linear, name: fc.bias, out_features: 4}]}]",
      "'fc.bias' is that of the parameter 'fc.bias'");
}

// What an expanded model is written out by hand.
TEST(ModelGraph, AModelFromTemplatesIsTheOneWrittenOut) {
  const auto templated = build(kResNet);
  std::string written;
  for (const std::string name : {"layer1.0", "layer1.1", "layer2.0", "layer2.1"}) {
    const std::string width = name.starts_with("layer1") ? "12" : "6";
    const std::string inner = name.starts_with("layer1") ? "24" : "12";
    written += "- type: sequential\n  name: " + name + "\n  layers:\n    - type: residual\n" +
               (name == "layer2.0"
                    ? "      shortcut: [{type: linear, name: downsample.0, out_features: 6, bias: "
                      "false}, {type: layer_norm, name: downsample.1}]\n"
                    : "") +
               "      layers: [{type: linear, name: fc1, out_features: " + inner +
               ", bias: false}, relu, {type: linear, name: fc2, out_features: " + width +
               ", bias: false}]\n    - relu\n";
  }
  written +=
      "- {type: parallel, layers: [{type: linear, name: head.a, out_features: 2}, relu]}\n"
      "- {type: linear, name: head.out, out_features: 10}\n";
  const auto plain = build(written);
  EXPECT_EQ(parameters(*templated), parameters(*plain));
  for (Sequential* model : {templated.get(), plain.get()}) model->initialize(5);
  const Tensor x = Tensor::full({3, 12}, 0.3f);
  EXPECT_EQ((*templated)(x).value().to_vector(), (*plain)(x).value().to_vector());
}

TEST(ModelGraph, TheResolvedConfigurationBuildsTheSame) {
  Config config = parse_yaml(
      "data: {type: synthetic, features: 12, train_size: 40, test_size: 8}\n"
      "optimizer: {type: adam}\n",
      "run.yaml");
  config.set("model", parse_yaml(kResNet, "run.yaml"));
  const auto first = build_experiment(config);
  const auto again = build_experiment(parse_yaml(first->config.to_yaml(), "config.yaml"));
  EXPECT_EQ(again->config, first->config);
  EXPECT_EQ(parameters(*again->model), parameters(*first->model));
  for (size_t i = 0; i < first->model->parameters().size(); ++i) {
    EXPECT_EQ(again->model->parameters()[i]->values().to_vector(),
              first->model->parameters()[i]->values().to_vector());
  }
  EXPECT_EQ(first->config.at("model").at("layers").items()[0].at("width").text(), "12");
}

TEST(ModelGraph, TheLastLayerMustFitTheLoss) {
  Config config = parse_yaml(
      "data: {type: synthetic, features: 12, train_size: 40, test_size: 8}\n"
      "optimizer: {type: adam}\n"
      "model:\n"
      "  - {type: residual, layers: [relu]}\n",
      "run.yaml");
  expect_throws<ConfigError>([&] { build_experiment(config); },
                             "run.yaml:4:5: model.0: layer 'residual1' (residual), the last one, "
                             "gives shape [12] per example; the data has 10 classes");
}

TEST(ModelGraph, ReadsTheKeysOfAShortcutThatItDoesNotUse) {
  const auto with = [](const std::string& shortcut) {
    return "[{type: residual, layers: [relu], shortcut: " + shortcut + "}]";
  };
  // Shapes need not fit there, and nothing of it is built.
  EXPECT_EQ(build(with("{type: linear, out_features: 5}"))->parameters().size(), 0u);
  EXPECT_EQ(build(with("[relu, {type: linear, name: d, out_features: 5}, {type: layer_norm}]"))
                ->parameters()
                .size(),
            0u);
  EXPECT_EQ(build(with("{type: max_pool, kernel: 2}"))->parameters().size(), 0u);
  refuses(with("{type: linear, out_feature: 5}"),
          "shortcut.out_feature: unknown key 'out_feature'; did you mean 'out_features'");
  refuses(with("{type: linear, out_features: 5, bogus: 3}"), "shortcut.bogus: unknown key 'bogus'");
  refuses(with("{type: linear, out_features: -1}"), "shortcut.out_features: expected");
  refuses(with("[relu, {type: linear, out_features: []}]"), "shortcut.1.out_features: expected");
  refuses(with("{type: lineer, out_features: 5}"), "unknown layer 'lineer'");
}

TEST(ModelGraph, NamesWhoGivesTheShapeThatAKeyDoesNotFit) {
  refuses(
      "- {type: conv2d, name: stem, out_channels: 6, kernel: 1}\n"
      "- {type: conv2d, name: c, out_channels: 8, kernel: 1, groups: 4}\n",
      "1.groups: 4 groups do not divide the channels: 6 in (shape [6, 4, 4]), 8 out; layer 'stem' "
      "(conv2d) at m.yaml:1:3 gives that shape to layer 'c' (conv2d)",
      {3, 4, 4});
}

}  // namespace
}  // namespace lacuna::model_graph_test
