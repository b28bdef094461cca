#include "lacuna/framework/model/model_layers.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/layers/builtin.hpp"
#include "throws.h"

namespace lacuna::model_layers_test {
namespace {

using testing::ElementsAre;

// What is filled into layers is asked of their types.
[[maybe_unused]] const bool are_registered = [] {
  if (!layer_registry().contains("linear")) register_layers(layer_registry());
  return true;
}();

ModelLayers expand(const std::string& yaml) { return expand_model(parse_yaml(yaml, "m.yaml")); }

// "path type" of all layers, depth first; what follows a residual's "|" is its shortcut.
void list(const std::vector<ModelLayer>& layers, std::vector<std::string>& into) {
  for (const ModelLayer& layer : layers) {
    into.push_back(layer.path + " " + layer.type);
    list(layer.layers, into);
    if (!layer.shortcut.empty()) into.emplace_back("|");
    list(layer.shortcut, into);
  }
}

std::vector<std::string> paths(const std::string& yaml) {
  std::vector<std::string> all;
  list(expand(yaml).layers, all);
  return all;
}

void refuses(const std::string& yaml, const std::string& message) {
  expect_throws<ConfigError>([&] { expand(yaml); }, message);
}

TEST(ModelLayers, CountNamesByTypeOnEachLevelOfPaths) {
  EXPECT_THAT(paths("[relu, {type: relu, name: a}, relu, tanh, {type: sequential, layers: [relu, "
                    "{type: sequential, name: in, layers: [relu]}]}]"),
              ElementsAre("relu1 relu", "a relu", "relu3 relu", "tanh1 tanh",
                          "sequential1 sequential", "sequential1.relu1 relu",
                          "sequential1.in sequential", "sequential1.in.relu1 relu"));
}

TEST(ModelLayers, ResidualAndParallelAddNoLevelAndShareTheCounts) {
  EXPECT_THAT(
      paths("[relu, {type: residual, layers: [relu, {type: parallel, name: heads, layers: [{type: "
            "linear, name: attn.q}, relu]}], shortcut: [relu, {type: tanh}]}, relu]"),
      ElementsAre("relu1 relu", "residual1 residual", "relu2 relu", "heads parallel",
                  "attn.q linear", "relu3 relu", "|", "relu4 relu", "tanh1 tanh", "relu5 relu"));
}

TEST(ModelLayers, AShortcutIsATypeALayerOrAList) {
  for (const char* shortcut : {"tanh", "{type: tanh}", "[tanh]", "[{type: tanh}]"}) {
    const ModelLayers model =
        expand("[{type: residual, layers: [relu], shortcut: " + std::string(shortcut) + "}]");
    ASSERT_EQ(model.layers[0].shortcut.size(), 1u);
    EXPECT_EQ(model.layers[0].shortcut[0].path, "tanh1");
    EXPECT_FALSE(model.layers[0].always_shortcut);
    EXPECT_EQ(model.layers[0].options.required<std::string>("when"), "differs");
  }
  EXPECT_TRUE(expand("[{type: residual, layers: [relu], shortcut: tanh, when: always}]")
                  .layers[0]
                  .always_shortcut);
  refuses("[{type: residual, layers: [relu], shortcut: tanh, when: sometimes}]",
          "m.yaml:1:57: 0.when: expected differs (only where the identity does not fit) or always, "
          "found 'sometimes'");
  refuses("[{type: residual, layers: [relu], when: always}]",
          "m.yaml:1:41: 0.when: `when` sets when the `shortcut` is used, but there is none");
  refuses("[{type: residual, layers: [relu], shortcut: []}]",
          "0.shortcut: expected at least one layer, found a list of 0 values");
}

TEST(ModelLayers, RepeatNumbersTheCopies) {
  EXPECT_THAT(paths("[{type: relu, name: act, repeat: 2}, {type: sequential, name: h, repeat: 2, "
                    "layers: [tanh, {type: relu, repeat: 1}]}, {type: relu, repeat: 1}]"),
              ElementsAre("act.0 relu", "act.1 relu", "h.0 sequential", "h.0.tanh1 tanh",
                          "h.0.relu1.0 relu", "h.1 sequential", "h.1.tanh1 tanh",
                          "h.1.relu1.0 relu", "relu2.0 relu"));
  refuses("[{type: relu, repeat: 0}]", "0.repeat: expected an integer of at least 1, found '0'");
  refuses("[{type: relu, repeat: many}]", "0.repeat: expected an integer, found 'many'");
  refuses("[{type: relu, repeat: 1000000000}]",
          "m.yaml:1:23: 0.repeat: the model has more than 10000 layers; too many repetitions?");
  refuses("[{type: sequential, repeat: 200, layers: [{type: relu, repeat: 100}]}]",
          "the model has more than 10000 layers; too many repetitions?");
  refuses("[{type: residual, repeat: 2, layers: [relu]}]",
          "m.yaml:1:27: 0.repeat: a residual adds no level to paths, so its copies would have the "
          "same names; repeat a sequential around it: {type: sequential, name: …, repeat: …, "
          "layers: [{type: residual, …}]}");
}

TEST(ModelLayers, FirstChangesTheFirstCopy) {
  const ModelLayers model = expand(
      "[{type: linear, name: fc, out_features: 8, repeat: 3, first: {out_features: 4, bias: "
      "false}}]");
  ASSERT_EQ(model.layers.size(), 3u);
  EXPECT_EQ(model.layers[0].options.required<int64_t>("out_features"), 4);
  EXPECT_EQ(model.layers[0].options.required<bool>("bias"), false);
  EXPECT_EQ(model.layers[0].options.at("bias").position().text(), "m.yaml:1:86");
  EXPECT_EQ(model.layers[1].options.required<int64_t>("out_features"), 8);
  EXPECT_FALSE(model.layers[2].options.has("bias"));
  refuses("[{type: relu, first: {p: 1}}]",
          "m.yaml:1:22: 0.first: `first` is for the first of several copies, which `repeat` makes");
  refuses("[{type: relu, repeat: 2, first: 3}]",
          "0.first: expected a map of the differences in the first copy, found '3'");
  refuses("[{type: relu, repeat: 2, first: {name: a}}]", "`first` cannot change 'name'");
  // An argument of a template is told where it was written.
  refuses(
      "{define: {pair: {arguments: {stride: 1}, layers: [relu]}}, layers: [{type: pair, repeat: 2, "
      "first: {strid: 2}}]}",
      ": layers.0.first.strid: the template 'pair' has no argument 'strid'; did you mean "
      "'stride'?");
}

// A ResNet's shape of things.
constexpr const char* kBlocks = R"(
define:
  block:
    arguments: {width: null, inner: $(2 * width), act: relu}
    layers:
      - type: residual
        shortcut: {type: linear, name: downsample.0, out_features: $width}
        layers:
          - {type: linear, name: fc1, out_features: $inner}
          - $act
          - {type: linear, name: fc2, out_features: $width}
      - $act
layers:
  - {type: block, name: layer1, repeat: 2, width: 8}
  - {type: block, name: layer2, repeat: 2, width: 4, first: {inner: 3, act: tanh}}
  - {type: block, width: $(2 * 3)}
)";

TEST(ModelLayers, TemplatesAreLevelsFilledWithTheirArguments) {
  const ModelLayers model = expand(kBlocks);
  std::vector<std::string> all;
  list({model.layers[2]}, all);
  EXPECT_THAT(all, ElementsAre("layer2.0 block", "layer2.0.residual1 residual",
                               "layer2.0.fc1 linear", "layer2.0.tanh1 tanh", "layer2.0.fc2 linear",
                               "|", "layer2.0.downsample.0 linear", "layer2.0.tanh2 tanh"));
  std::vector<std::string> tops;
  for (const ModelLayer& layer : model.layers) tops.push_back(layer.path);
  EXPECT_THAT(tops, ElementsAre("layer1.0", "layer1.1", "layer2.0", "layer2.1", "block3"));
  const auto widths = [&](size_t i) {
    const std::vector<ModelLayer>& body = model.layers[i].layers[0].layers;
    return std::vector<int64_t>{body[0].options.required<int64_t>("out_features"),
                                body[2].options.required<int64_t>("out_features")};
  };
  EXPECT_THAT(widths(1), ElementsAre(16, 8));
  EXPECT_THAT(widths(2), ElementsAre(3, 4));
  EXPECT_THAT(widths(3), ElementsAre(8, 4));
  EXPECT_THAT(widths(4), ElementsAre(12, 6));
  EXPECT_EQ(model.layers[3].kind, ModelLayer::Kind::Sequential);
  EXPECT_EQ(model.layers[3].described(), "layer 'layer2.1' (block) at m.yaml:15:5");
}

TEST(ModelLayers, TemplatesUseTemplatesAndTakeLayersAsArguments) {
  const std::string yaml =
      "define:\n"
      "  pair: {arguments: {of: null}, layers: [$of, $of]}\n"
      "  two: {arguments: {n: 1, body: {type: relu, name: r}}, layers: [{type: pair, of: $body,\n"
      "        name: p$n}, {type: sequential, layers: $more}]}\n";
  expect_throws<ConfigError>([&] { expand(yaml + "layers: [two]\n"); },
                             "m.yaml:4:48: define.two.layers.1.layers: the template 'two' has no "
                             "argument 'more'");
  EXPECT_THAT(paths("{define: {one: {arguments: {of: tanh}, layers: [$of]}, two: {arguments: {l: "
                    "null}, layers: [one, {type: one, of: relu}, {type: sequential, layers: $l}]}},"
                    " layers: [{type: two, l: [tanh, relu]}]}"),
              ElementsAre("two1 two", "two1.one1 one", "two1.one1.tanh1 tanh", "two1.one2 one",
                          "two1.one2.relu1 relu", "two1.sequential1 sequential",
                          "two1.sequential1.tanh1 tanh", "two1.sequential1.relu1 relu"));
}

TEST(ModelLayers, ATemplateMayNotNameItself) {
  refuses("{define: {a: {layers: [relu, a]}}, layers: [a]}",
          "m.yaml:1:30: define.a.layers.1: the template 'a' contains itself: a → a; within layer "
          "'a1' (a) at m.yaml:1:45");
  refuses(
      "{define: {z: {layers: [a]}, a: {layers: [{type: residual, layers: [b]}]}, b: {layers: "
      "[{type: sequential, layers: [a]}]}}, layers: [z]}",
      "the template 'a' contains itself: a → b → a");
  refuses("{define: {a: {arguments: {t: relu}, layers: [$t]}}, layers: [{type: a, t: a}]}",
          "the template 'a' contains itself: a → a");
}

TEST(ModelLayers, ArgumentsMustBeThoseOfTheTemplate) {
  const std::string define =
      "{define: {block: {arguments: {width: null, act: relu}, layers: [$act, "
      "{type: linear, out_features: $width}]}}, layers: ";
  refuses(define + "[{type: block}]}",
          "m.yaml:1:121: layers.0: the template 'block' needs the argument 'width'");
  refuses(define + "[block]}", "layers.0: the template 'block' needs the argument 'width'");
  refuses(define + "[{type: block, width: null}]}", "needs the argument 'width'");
  refuses(
      define + "[{type: block, widht: 3}]}",
      "m.yaml:1:142: layers.0.widht: the template 'block' has no argument 'widht'; did you mean "
      "'width'?");
  refuses(define + "[{type: block, width: 3, repeat: 2, first: {stride: 2}}]}",
          "the template 'block' has no argument 'stride'; valid names: width, act");
  refuses("{define: {block: {layers: [relu]}}, layers: [{type: block, width: 3}]}",
          "m.yaml:1:67: layers.0.width: the template 'block' has no argument 'width'");
}

TEST(ModelLayers, DefaultsMayBeMadeOfArgumentsThatComeLater) {
  const auto model = [](const std::string& arguments) {
    return "{define: {block: {arguments: {" + arguments +
           "}, layers: [{type: linear, out_features: $inner}]}}, layers: [{type: block, WIDTH}]}";
  };
  const auto expanded = [&](std::string yaml, const std::string& given) {
    yaml.replace(yaml.find(", WIDTH"), 7, given.empty() ? "" : ", " + given);
    return expand(yaml).layers[0].layers[0].options.required<int64_t>("out_features");
  };
  const std::string later = model("inner: $(2 * width + depth), depth: $width, width: 3");
  EXPECT_EQ(expanded(later, ""), 9);
  EXPECT_EQ(expanded(later, "width: 5"), 15);
  EXPECT_EQ(expanded(later, "depth: 1"), 7);
  EXPECT_EQ(expanded(later, "inner: 4"), 4);
  refuses("{define: {block: {arguments: {a: $b, b: $(a + 1)}, layers: [relu]}}, layers: [block]}",
          "define.block.arguments.a: the default of 'a' depends on that of 'b', in a circle");
  refuses("{define: {block: {arguments: {a: $(a + 1)}, layers: [relu]}}, layers: [block]}",
          "the default of 'a' depends on that of 'a', in a circle");
}

TEST(ModelLayers, NamesHoldNoControlCharacters) {
  refuses("[{type: relu, name: \"a\\nb\"}]", "a layer's name holds a control character");
  for (const char* name : {"a*b", "x[1]", "what?"}) {
    refuses(std::string("[{type: relu, name: \"") + name + "\"}]",
            std::string("a layer's name must not contain '*', '?' or '[', which are wildcards in "
                        "param_filter and frozen, found '") +
                name + "'");
  }
}

TEST(ModelLayers, DefinitionsMustBeGood) {
  refuses("{define: [block], layers: [relu]}", "define: expected a map of templates, found a list");
  refuses("{define: {a: relu}, layers: [relu]}",
          "define.a: expected a template: a map with `arguments` and `layers`, found 'relu'");
  refuses("{define: {a: {argumnts: {}, layers: [relu]}}, layers: [relu]}",
          "m.yaml:1:25: define.a.argumnts: unknown key 'argumnts'; did you mean 'arguments'?");
  refuses("{define: {a: {arguments: {}}}, layers: [relu]}",
          "define.a.layers: a required key is missing");
  refuses("{define: {a: {layers: relu}}, layers: [relu]}",
          "define.a.layers: expected a list of layers, found 'relu'");
  refuses("{define: {a: {arguments: [n], layers: [relu]}}, layers: [relu]}",
          "define.a.arguments: expected a map of arguments and their defaults (null: required)");
  refuses("{define: {a: {arguments: {name: 3}, layers: [relu]}}, layers: [relu]}",
          "an argument cannot be called 'name': every layer has this key");
  refuses("{define: {a: {arguments: {a-b: 3}, layers: [relu]}}, layers: [relu]}",
          "an argument's name consists of letters, digits and '_', found 'a-b'");
  refuses("{define: {a/b: {layers: [relu]}}, layers: [relu]}",
          "m.yaml:1:16: a template's name must be text between single dots, without '/', found "
          "'a/b'");
  refuses("{define: {parallel: {layers: [relu]}}, layers: [relu]}",
          "define.parallel: there is already a layer named 'parallel'");
}

TEST(ModelLayers, NoTwoHaveOnePath) {
  refuses("[{type: relu, name: a}, {type: relu, name: a}]",
          "m.yaml:1:25: 1: two layers are named 'a'; give one of them another `name` (the other: "
          "m.yaml:1:2)");
  refuses("[{type: sequential, name: a, layers: [{type: relu, name: b}]}, {type: relu, name: a.b}]",
          "two layers are named 'a.b'");
  refuses("[{type: residual, layers: [{type: relu, name: a}], shortcut: {type: tanh, name: a}}]",
          "two layers are named 'a'");
  for (const std::string name : {"''", "a/b", ".a", "a.", "a..b"}) {
    refuses("[{type: relu, name: " + name + "}]",
            "m.yaml:1:21: 0.name: a layer's name must be text between single dots, without '/', "
            "found '");
  }
}

TEST(ModelLayers, FindsUnknownKeysOfCopiesAtTheirPositionAndMarksWhatWasCopied) {
  const Config model = parse_yaml(
      "define:\n  a:\n    layers: [{type: relu, odd: 1}]\nlayers: [{type: a, repeat: 3}]\n",
      "m.yaml");
  const ModelLayers layers = expand_model(model);
  model.require_all_read();
  std::vector<std::string> errors;
  for (const Config& copy : layers.copies) {
    try {
      copy.require_all_read();
    } catch (const ConfigError& error) {
      errors.emplace_back(error.what());
    }
  }
  ASSERT_EQ(errors.size(), 3u);  // the builder throws the first
  EXPECT_EQ(errors[0].substr(0, 67),
            "m.yaml:3:32: define.a.layers.0.odd: unknown key 'odd'; valid names:");
}

TEST(ModelLayers, SharesWhatIsUsedAsItIsWritten) {
  const Config model =
      parse_yaml("[relu, {type: linear, out_features: $(2 * 3)}, {type: dropout}]", "m.yaml");
  const ModelLayers layers = expand_model(model);
  EXPECT_EQ(layers.layers[1].options.required<int64_t>("out_features"), 6);
  EXPECT_EQ(model.items()[1].at("out_features").text(), "$(2 * 3)");
  layers.layers[2].options.get("p", 0.5);
  EXPECT_EQ(model.items()[2].at("p").text(), "0.5");
  EXPECT_EQ(model.items()[2].at("name").text(), "dropout1");
  // A type that is no name is found out when it is looked for, at its place.
  const ModelLayers odd = expand("{layers: [relu, $$a/b]}");
  EXPECT_EQ(odd.layers[1].type, "$a/b");
  EXPECT_EQ(odd.layers[1].node.where(), "m.yaml:1:17: layers.1");
}

TEST(ModelLayers, GivesTheFanInToLinearLayersThatHaveNone) {
  const ModelLayers model = expand(
      "{init_fan_in: nonzeros, define: {a: {layers: [{type: linear}]}}, layers: [{type: linear, "
      "init_fan_in: 3}, {type: residual, layers: [{type: linear}]}, a, {type: linear, repeat: "
      "1}]}");
  const auto fan_in = [](const ModelLayer& layer) {
    return layer.options.at("init_fan_in").text();
  };
  EXPECT_EQ(fan_in(model.layers[0]), "3");
  EXPECT_EQ(fan_in(model.layers[1].layers[0]), "nonzeros");
  EXPECT_EQ(fan_in(model.layers[2].layers[0]), "nonzeros");
  EXPECT_EQ(fan_in(model.layers[3]), "nonzeros");
}

TEST(ModelLayers, GivesSparseGradientToEmbeddingsThatDoNotStateIt) {
  const ModelLayers model = expand(
      "{sparse_gradient: true, layers: [{type: token_embedding, name: a}, {type: residual, layers: "
      "[{type: token_embedding, name: b, sparse_gradient: false}]}, {type: embedding_bag}, "
      "{type: linear}, {type: linear, tied_to: b}]}");
  const auto given = [](const ModelLayer& layer) {
    return layer.options.peek("sparse_gradient").text();
  };
  EXPECT_EQ(given(model.layers[0]), "true");
  EXPECT_EQ(given(model.layers[1].layers[0]), "false");
  EXPECT_EQ(given(model.layers[2]), "true");
  EXPECT_FALSE(model.layers[3].options.has("sparse_gradient"));
  EXPECT_EQ(given(expand("{sparse_gradient: false, layers: [{type: embedding_bag}]}").layers[0]),
            "false");
}

TEST(ModelLayers, RefusesSparseGradientThatNoLayerCanUse) {
  refuses("{sparse_gradient: often, layers: [{type: token_embedding}]}",
          "m.yaml:1:19: sparse_gradient: expected true or false, found 'often'");
  refuses("{sparse_gradient: true, layers: [relu]}",
          "m.yaml:1:19: sparse_gradient: this model has no token_embedding or embedding_bag");
  const std::string own = ", layers: [{type: token_embedding, sparse_gradient: false}]}";
  refuses("{sparse_gradient: true" + own,
          "m.yaml:1:19: sparse_gradient: all embeddings of this model state their own "
          "sparse_gradient");
  EXPECT_NO_THROW(expand("{sparse_gradient: false" + own));
  refuses(
      "{sparse_gradient: true, layers: [{type: token_embedding, name: a}, {type: linear, name: "
      "head, tied_to: a}]}",
      "m.yaml:1:19: sparse_gradient: 'head' is tied to 'a', so every row of this embedding has a "
      "gradient; give 'head' its own weight (in presets: tie_word_embeddings: false), or remove "
      "sparse_gradient");
}

TEST(ModelLayers, RefusesWhatIsNoModel) {
  refuses("relu", "expected a list of layers, or a map with `layers`, found 'relu'");
  refuses("{layers: relu}", "m.yaml:1:10: layers: expected a list of layers, found 'relu'");
  refuses("[]", "expected at least one layer");
  refuses("[[relu]]", "expected a layer: its type, or a map with `type`, found a list of 1 value");
  refuses("[{name: a}]", "0.type: a required key is missing");
  refuses("[sequential]", "layers: a required key is missing");
  refuses("[{type: sequential, layers: []}]", "0.layers: expected at least one layer");
  refuses("[$act]", "m.yaml:1:2: 0: '$act' is used outside a template");
  std::string define = "{define: {";
  for (int i = 0; i < 101; ++i) {
    define += "t" + std::to_string(i) + ": {layers: [t" + std::to_string(i + 1) + "]}, ";
  }
  refuses(define + "t101: {layers: [relu]}}, layers: [t0]}",
          "groups of layers nest deeper than 100");
}

}  // namespace
}  // namespace lacuna::model_layers_test
