// `parametrization: sparse_mup` of transformers: heads, tied ones too, and the scale of attention.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "lacuna/framework/config/registry.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/parts/parametrization.hpp"
#include "lacuna/layers/tokens/attention.h"
#include "lacuna/optimizers/optimizer_registry.h"
#include "lacuna/optimizers/sgd.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::parametrized_presets_test {
namespace {

class ParametrizedPresets : public testing::Test {
 protected:
  ParametrizedPresets() {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "to be or not to be, that is the question\n";
    write_text(folder_ / "play.txt", text);
  }

  std::unique_ptr<Experiment> build(const std::string& model, const std::string& more = "",
                                    const std::string& mup = "") const {
    return build_experiment(parse_yaml(
        "data: {type: text, path: " + (folder_ / "play.txt") +
            ", context: 8, stride: 8}\nmodel: " + model + "\n" +
            (more.find("optimizer:") == std::string::npos ? "optimizer: {type: adamw, lr: 0.01}\n"
                                                          : "") +
            "train: {batch_size: 4, threads: 1, steps: 4}\n"
            "parametrization: {type: sparse_mup, base_width: 16" +
            mup + "}\n" + more,
        "e.yaml"));
  }

  static std::map<std::string, Parametrization::Row> rows_of(const Experiment& e) {
    std::map<std::string, Parametrization::Row> rows;
    for (const auto& row : e.parametrization->rows(*e.optimizer)) {
      rows[row.sized->parameter->name()] = row;
    }
    return rows;
  }

  static std::optional<double> scale_of_attention(const Experiment& e) {
    for (Module* module : e.model->modules()) {
      if (const auto* attention = dynamic_cast<const Attention*>(module)) {
        return attention->options().scale;
      }
    }
    return std::nullopt;
  }

  const TemporaryFolder folder_;
};

constexpr const char* kGpt =
    "{type: gpt2, n_embd: 64, n_layer: 1, n_head: 4, resid_pdrop: 0, embd_pdrop: 0, attn_pdrop: 0";

TEST_F(ParametrizedPresets, HaveOneWidth) {
  const auto e = build(std::string(kGpt) + "}", "sparsity: {sparsity: 0.75}\n");
  const auto rows = rows_of(*e);
  for (const char* name : {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}) {
    const auto& row = rows.at(std::string("transformer.h.0.") + name + ".weight");
    EXPECT_EQ(role_in_words(row.sized->role), "hidden") << name;
    EXPECT_DOUBLE_EQ(row.sized->in, 4.0) << name;  // n_inner grows as n_embd does
    EXPECT_DOUBLE_EQ(row.density, 0.25) << name;
    EXPECT_DOUBLE_EQ(row.first, 1.0) << name;
    EXPECT_DOUBLE_EQ(row.update.eps, 0.25) << name;
  }
  EXPECT_EQ(role_in_words(rows.at("transformer.wte.weight").sized->role), "embedding");
  EXPECT_EQ(rows.at("transformer.wte.weight").update, UpdateFactors{});
}

// The head shares the embedding's weight: what divides its inputs is in the norm before it.
TEST_F(ParametrizedPresets, DivideOutputsOfTiedHeadsInTheLastNorm) {
  const auto e = build(std::string(kGpt) + "}");
  const auto row = rows_of(*e).at("transformer.ln_f.weight");
  EXPECT_EQ(role_in_words(row.sized->role), "last norm");
  EXPECT_DOUBLE_EQ(row.update.lr, 0.25);
  EXPECT_EQ(e->model->parameter("transformer.ln_f.weight")->values().data()[0], 0.25f);
  EXPECT_EQ(e->model->parameter("transformer.h.0.ln_1.weight")->values().data()[0], 1.0f);
  const auto off = build(std::string(kGpt) + "}", "", ", output_multiplier: false");
  EXPECT_EQ(off->model->parameter("transformer.ln_f.weight")->values().data()[0], 1.0f);
  const auto untied = build(std::string(kGpt) + ", tie_word_embeddings: false}");
  const auto head = rows_of(*untied).at("lm_head.weight");
  EXPECT_DOUBLE_EQ(head.first, 0.25);
  EXPECT_DOUBLE_EQ(head.update.lr, 0.25);
  EXPECT_EQ(untied->model->parameter("transformer.ln_f.weight")->values().data()[0], 1.0f);
}

TEST_F(ParametrizedPresets, GiveAttentionItsScale) {
  const auto e = build(std::string(kGpt) + "}");
  EXPECT_DOUBLE_EQ(*scale_of_attention(*e), 1.0 / 8.0);  // 1/√(16 · 4)
  EXPECT_DOUBLE_EQ(e->config.peek("model.attention_scale").as<double>(), 1.0 / 8.0);
  // The resolved configuration means the same, without choosing again.
  const auto again = build_experiment(e->config, Start::FromCheckpoint);
  EXPECT_DOUBLE_EQ(*scale_of_attention(*again), 1.0 / 8.0);
  EXPECT_FALSE(scale_of_attention(*build(std::string(kGpt) + "}", "", ", attention_scale: false")));
  EXPECT_DOUBLE_EQ(*scale_of_attention(*build(std::string(kGpt) + ", attention_scale: 0.5}")), 0.5);
  const std::string at_base = "{type: gpt2, n_embd: 16, n_layer: 1, n_head: 4}";
  EXPECT_FALSE(scale_of_attention(*build(at_base)));
}

TEST_F(ParametrizedPresets, RefuseScalesOfAttentionThatAreNone) {
  for (const char* scale : {"0", "-0.5", "large"}) {
    expect_throws<ConfigError>(
        [&] { build(std::string(kGpt) + ", attention_scale: " + scale + "}"); },
        std::string(": model.attention_scale: expected a number above 0, found '") + scale + "'");
  }
}

TEST_F(ParametrizedPresets, AreListsOfLayersToo) {
  const std::string layers =
      "[{type: token_embedding, name: wte, features: 32}, {type: layer_norm, name: ln}, {type: "
      "linear, name: qkv, out_features: 96}, {type: attention, heads: 2, causal: true}, {type: "
      "linear, name: proj, out_features: 32}, {type: linear, name: head}]";
  const auto e = build(layers);
  const auto rows = rows_of(*e);
  EXPECT_DOUBLE_EQ(rows.at("qkv.weight").sized->in, 2.0);
  EXPECT_DOUBLE_EQ(rows.at("proj.weight").sized->in, 2.0);  // of 96 features attention makes 32
  EXPECT_EQ(role_in_words(rows.at("head.weight").sized->role), "output");
  EXPECT_DOUBLE_EQ(*scale_of_attention(*e), 1.0 / std::sqrt(32.0));
  EXPECT_TRUE(e->config.at("model").is_map());
  const auto given = build(layers, "", ", width: 64");
  EXPECT_DOUBLE_EQ(rows_of(*given).at("proj.weight").sized->in, 4.0);
}

TEST_F(ParametrizedPresets, RefuseWhatHasNoRules) {
  expect_throws<ConfigError>(
      [&] {
        build(
            "[{type: token_embedding, name: wte, features: 32}, {type: linear, name: fc, "
            "out_features: 32}, {type: linear, name: head, tied_to: wte}]");
      },
      "parametrization.output_multiplier: layer 'head' (linear) at e.yaml:2:");
  optimizer_registry().add("mine", "an optimizer of a user's",
                           [](const Config& config, std::vector<ParameterPtr> parameters) {
                             class Mine final : public Optimizer {
                              public:
                               explicit Mine(std::vector<ParameterPtr> all)
                                   : Optimizer(std::move(all), {.lr = 0.1}) {}
                               std::string_view type() const override { return "mine"; }

                              protected:
                               void update(const Update&) override {}
                             };
                             config.get("lr").mark_read();
                             return std::make_unique<Mine>(std::move(parameters));
                           });
  expect_throws<ConfigError>([&] { build(std::string(kGpt) + "}", "optimizer: {type: mine}\n"); },
                             "optimizer.type: the parametrization has no rules for the optimizer "
                             "'mine', only for sgd, adam and adamw");
}

TEST_F(ParametrizedPresets, CountNonzerosIfToldTo) {
  const auto deviation = [&](const std::string& more) {
    const auto e = build(std::string(kGpt) + more + "}", "sparsity: {sparsity: 0.75}\n",
                         ", base_density: 0.25, width: 16");
    const ParameterPtr weight = e->model->parameter("transformer.h.0.mlp.c_fc.weight");
    double squares = 0.0;
    for (const float value : weight->to_dense().to_vector()) squares += std::pow(value, 2);
    return std::sqrt(squares / static_cast<double>(weight->pattern()->nnz()));
  };
  EXPECT_NEAR(deviation(""), 0.02, 0.001);
  EXPECT_NEAR(deviation(", init_fan_in: nonzeros"), 0.04, 0.002);
}

}  // namespace
}  // namespace lacuna::parametrized_presets_test
