// Globs of cstorch's model zoo on models with Hugging Face's names.
#include "lacuna/sparsity/options/cstorch_names.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/options/filter.h"
#include "throws.h"

namespace lacuna::cstorch_names_test {
namespace {

using testing::ElementsAre;

std::vector<ParameterPtr> parameters(const std::vector<std::string>& names) {
  std::vector<ParameterPtr> all;
  for (const std::string& name : names) {
    all.push_back(std::make_shared<Parameter>(Shape{4, 4}, Initializer::uniform(1.0)));
    all.back()->set_name(name + ".weight");
    all.back()->use = WeightUse::Linear;
  }
  return all;
}

std::vector<std::string> chosen(const std::vector<std::string>& globs,
                                const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const ParameterPtr& parameter : ParameterFilter(globs).select(parameters(names))) {
    found.push_back(parameter->name().substr(0, parameter->name().size() - 7));
  }
  return found;
}

const std::vector<std::string>& bert() {
  static const std::vector<std::string> names = {
      "bert.encoder.layer.0.attention.self.query", "bert.encoder.layer.0.attention.self.key",
      "bert.encoder.layer.0.attention.self.value", "bert.encoder.layer.0.attention.output.dense",
      "bert.encoder.layer.0.intermediate.dense",   "bert.encoder.layer.0.output.dense",
      "bert.encoder.layer.11.output.dense",        "classifier"};
  return names;
}

TEST(CstorchNames, ChooseThePartsOfBert) {
  EXPECT_THAT(chosen({"*proj_q_dense_layer.weight"}, bert()), ElementsAre(bert()[0]));
  EXPECT_THAT(chosen({"*proj_k_dense_layer*", "*.proj_v_dense_layer.weight"}, bert()),
              ElementsAre(bert()[1], bert()[2]));
  EXPECT_THAT(chosen({"*proj_output_dense_layer.weight"}, bert()), ElementsAre(bert()[3]));
  EXPECT_THAT(chosen({"*ffn.ffn.0.linear_layer.weight"}, bert()), ElementsAre(bert()[4]));
  EXPECT_THAT(chosen({"*ffn.ffn.1.linear_layer.weight"}, bert()),
              ElementsAre(bert()[5], bert()[6]));
  EXPECT_THAT(chosen({"*dense_layer.weight", "*linear_layer.weight"}, bert()).size(), 7);
  EXPECT_THAT(chosen({"transformer_encoder.layers.11.ffn.*"}, bert()), ElementsAre(bert()[6]));
}

TEST(CstorchNames, ChooseThePartsOfTheOtherFamilies) {
  const auto first = [](const std::string& glob, const std::string& name) {
    EXPECT_THAT(chosen({glob}, {"other", name}), ElementsAre(name)) << glob;
  };
  first("*proj_q_dense_layer.weight", "vit.encoder.layer.3.attention.attention.query");
  first("*proj_v_dense_layer.weight", "distilbert.transformer.layer.0.attention.v_lin");
  first("*proj_output_dense_layer.weight", "distilbert.transformer.layer.0.attention.out_lin");
  first("*ffn.ffn.0.linear_layer.weight", "distilbert.transformer.layer.0.ffn.lin1");
  first("*ffn.ffn.1.linear_layer.weight", "transformer.h.7.mlp.c_proj");
  first("*transformer_decoder.layers.7.ffn.ffn.0.linear_layer.weight", "transformer.h.7.mlp.c_fc");
  first("*proj_output_dense_layer.weight", "transformer.h.7.attn.c_proj");
  first("*proj_k_dense_layer.weight", "model.layers.1.self_attn.k_proj");
  first("*linear_layer_for_glu.weight", "model.layers.1.mlp.gate_proj");
  first("*ffn.ffn.0.linear_layer.weight", "model.layers.1.mlp.up_proj");
}

TEST(CstorchNames, SayThatGpt2HasQueriesKeysAndValuesInOne) {
  const std::vector<std::string> gpt2 = {"transformer.wte", "transformer.h.0.attn.c_attn",
                                         "transformer.h.0.attn.c_proj"};
  for (const char* part : {"q", "k", "v"}) {
    expect_throws<ConfigError>(
        [&] { chosen({"*proj_" + std::string(part) + "_dense_layer.weight"}, gpt2); },
        "_dense_layer.weight' matches no parameter; queries, keys and values of this model are one "
        "weight each block, [q | k | v]: name it '*attn.c_attn.weight', with balance_out_groups: "
        "3");
  }
  expect_throws<ConfigError>([&] { chosen({"*ffn.ffn.0.linear_layer.weight"}, gpt2); },
                             "matches no parameter");
}

// "*dense_layer.weight" is queries, keys, values and what follows attention, there and here.
TEST(CstorchNames, ChooseGpt2sOneWeightOfThreeWhereTheyMeanAllThree) {
  const std::vector<std::string> gpt2 = {"transformer.h.0.attn.c_attn",
                                         "transformer.h.0.attn.c_proj", "transformer.h.0.mlp.c_fc",
                                         "transformer.h.1.attn.c_attn"};
  EXPECT_THAT(chosen({"*dense_layer.weight"}, gpt2), ElementsAre(gpt2[0], gpt2[1], gpt2[3]));
  EXPECT_THAT(chosen({"*proj_?_dense_layer.weight"}, gpt2), ElementsAre(gpt2[0], gpt2[3]));
  EXPECT_THAT(chosen({"transformer_decoder.layers.1.*"}, gpt2), ElementsAre(gpt2[3]));
  EXPECT_THAT(chosen({"*linear_layer.weight"}, gpt2), ElementsAre(gpt2[2]));
}

TEST(CstorchNames, AreNoneForOtherNamesAndGlobs) {
  EXPECT_TRUE(cstorch_names("fc1.weight").empty());
  EXPECT_TRUE(cstorch_names("weight").empty());
  EXPECT_TRUE(cstorch_names("a.0.weight").empty());
  EXPECT_TRUE(cstorch_names("a.0.mlp.c_fc2.weight").empty());
  EXPECT_FALSE(is_cstorch_glob("*.layers.0.*"));
  // A glob that is not cstorch's goes by the names themselves.
  EXPECT_THAT(chosen({"*layer.0*"}, bert()).size(), 6);
  expect_throws<ConfigError>([] { chosen({"*layers.0*"}, bert()); }, "matches no parameter");
}

}  // namespace
}  // namespace lacuna::cstorch_names_test
