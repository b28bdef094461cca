// The layer qkv, and sizes that the data says.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/model/model_layers.hpp"
#include "lacuna/layers/builtin.hpp"
#include "throws.h"

namespace lacuna::qkv_test {
namespace {

// What is filled into layers is asked of their types.
[[maybe_unused]] const bool are_registered = [] {
  if (!layer_registry().contains("linear")) register_layers(layer_registry());
  return true;
}();

ModelLayers expand(const std::string& yaml, const ModelContext& context = {}) {
  return expand_model(parse_yaml(yaml, "m.yaml"), context);
}

TEST(Qkv, IsThreeLinearLayersSideBySide) {
  const ModelLayers model = expand(
      "[{type: qkv, names: [attn.q, attn.k, attn.v], out_features: 8, kv_features: 4, bias: false, "
      "init: zeros}]");
  const ModelLayer& qkv = model.layers.at(0);
  EXPECT_EQ(qkv.kind, ModelLayer::Kind::Parallel);
  EXPECT_EQ(qkv.type, "qkv");
  ASSERT_EQ(qkv.layers.size(), 3u);
  const std::vector<std::string> paths = {"attn.q", "attn.k", "attn.v"};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(qkv.layers[i].type, "linear");
    EXPECT_EQ(qkv.layers[i].path, paths[i]);
    EXPECT_EQ(qkv.layers[i].options.get("out_features").text(), i == 0 ? "8" : "4");
    EXPECT_FALSE(qkv.layers[i].options.get("bias").as<bool>());
    EXPECT_EQ(qkv.layers[i].options.get("init").text(), "zeros");
    EXPECT_EQ(qkv.layers[i].node.position().text(), "m.yaml:1:2");
  }
}

TEST(Qkv, HasNamesWithoutBeingGivenAny) {
  const ModelLayers model = expand("[{type: sequential, name: a, layers: [qkv]}]");
  const std::vector<ModelLayer>& layers = model.layers.at(0).layers.at(0).layers;
  EXPECT_EQ(layers.at(0).path, "a.query");
  EXPECT_EQ(layers.at(1).path, "a.key");
  EXPECT_EQ(layers.at(2).path, "a.value");
  EXPECT_TRUE(layers.at(0).options.get("out_features").is_null());
}

TEST(Qkv, RefusesOtherKeysAndNumbersOfNames) {
  const auto refuses = [](const std::string& yaml, const std::string& message) {
    expect_throws<ConfigError>([&] { expand(yaml); }, message);
  };
  refuses("[{type: qkv, nams: [a, b, c]}]",
          "m.yaml:1:20: 0.nams: unknown key 'nams'; did you mean 'names'?");
  refuses("[{type: qkv, names: [a, b]}]", "m.yaml:1:21: 0.names: expected three names");
  refuses("[{type: qkv, names: [a, b, b]}]", "two layers are named 'b'");
  refuses("[{type: qkv, repeat: 2}]", "m.yaml:1:22: 0.repeat: a qkv adds no level to paths");
}

TEST(ModelContext, FillsInWhatIsLeftOutAndWritesIt) {
  const Config section = parse_yaml(
      "[{type: token_embedding, features: 4}, {type: linear, out_features: 7}, {type: sequential, "
      "layers: [relu, {type: linear}]}]",
      "m.yaml");
  expand_model(section, {.vocabulary_size = 65, .num_classes = 3});
  EXPECT_EQ(section.items()[0].get("vocab_size").text(), "65");
  EXPECT_EQ(section.items()[1].get("out_features").text(), "7");
  EXPECT_EQ(section.items()[2].get("layers").items()[1].get("out_features").text(), "3");
}

// A dollar sign in a name, or an expression, changes nothing of that.
TEST(ModelContext, FillsInBesideDollarSigns) {
  const Config section = parse_yaml(
      "[{type: token_embedding, name: w$$e, features: $(2 * 2)}, {type: sequential, name: s$$, "
      "layers: [relu, {type: linear, name: $$l}]}]",
      "m.yaml");
  const ModelLayers layers = expand_model(section, {.vocabulary_size = 65, .num_classes = 3});
  EXPECT_EQ(layers.layers[0].options.required<int64_t>("vocab_size"), 65);
  EXPECT_EQ(layers.layers[1].layers[1].path, "s$.$l");
  EXPECT_EQ(layers.layers[1].layers[1].options.required<int64_t>("out_features"), 3);
  // So that the run's own configuration has it without the data.
  EXPECT_EQ(section.items()[0].get("vocab_size").text(), "65");
  EXPECT_EQ(section.items()[0].get("name").text(), "w$$e");
  EXPECT_EQ(section.items()[1].get("layers").items()[1].get("out_features").text(), "3");
  EXPECT_EQ(expand_model(section).layers[1].layers[1].path, "s$.$l");
}

TEST(ModelContext, LeavesWhatIsGivenAndWhatItDoesNotKnow) {
  const Config given =
      parse_yaml("[{type: token_embedding, vocab_size: 9}, {type: linear, out_features: 2}]", "m");
  expand_model(given, {.vocabulary_size = 65, .num_classes = 3});
  EXPECT_EQ(given.items()[0].get("vocab_size").text(), "9");
  EXPECT_EQ(given.items()[1].get("out_features").text(), "2");
  const Config open = parse_yaml("[{type: token_embedding}, {type: linear}]", "m");
  expand_model(open);
  EXPECT_FALSE(open.items()[0].has("vocab_size"));
  EXPECT_FALSE(open.items()[1].has("out_features"));
}

// What is written there would be written to every copy, and is not kept with the run.
TEST(ModelContext, LeavesTemplatesRepetitionsAndTiedWeights) {
  const ModelContext data{.vocabulary_size = 65, .num_classes = 3};
  const ModelLayers repeated = expand("[{type: linear, name: a, repeat: 2}]", data);
  EXPECT_FALSE(repeated.layers.back().options.has("out_features"));
  const ModelLayers tied = expand("[{type: linear, tied_to: a}]", data);
  EXPECT_FALSE(tied.layers.back().options.has("out_features"));
  const ModelLayers defined =
      expand("{define: {b: {layers: [{type: linear}]}}, layers: [{type: b}]}", data);
  EXPECT_FALSE(defined.layers.back().layers.back().options.has("out_features"));
}

}  // namespace
}  // namespace lacuna::qkv_test
