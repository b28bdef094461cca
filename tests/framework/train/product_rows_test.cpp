// By how many rows a batch multiplies each weight, which layouts are chosen and FLOPs counted by.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "temporary_folder.h"

namespace lacuna::product_rows_test {
namespace {

constexpr const char* kText =
    "to be or not to be that is the question whether tis nobler in the mind to suffer the slings "
    "and arrows of outrageous fortune or to take arms against a sea of troubles";

// With [CLS] before each: of 3, 9, 2, 5, 3 and 2 tokens, 4 on average.
constexpr const char* kSentences =
    "0 to be\n1 in the mind to suffer the slings and\n0 die\n1 by opposing end them\n0 no more\n"
    "1 sleep\n";

class ProductRows : public testing::Test {
 protected:
  ProductRows() {
    folder_.write("text.txt", kText);
    folder_.write("sentences.txt", kSentences);
  }

  // Batches of four; without a measurement.
  std::unique_ptr<Experiment> build(const std::string& data, const std::string& model) const {
    return build_experiment(parse_yaml(
        "data: " + data + "\nmodel: " + model +
            "\noptimizer: {type: adam}\ntrain: {batch_size: 4, threads: 1}\n"
            "sparsity: {algorithm: static, sparsity: 0.5, layout: masked, param_filter: default}\n",
        "e.yaml"));
  }

  // Those of a batch of four, of the weights whose names end so.
  void expect_rows(const Experiment& e, const std::map<std::string, int64_t>& expected) const {
    for (const auto& [ending, rows] : expected) {
      int found = 0;
      for (const ParameterPtr& parameter : e.sparsity->parameters()) {
        if (!parameter->name().ends_with(ending)) continue;
        EXPECT_EQ(e.sparsity->compression().rows_of(*parameter), rows) << parameter->name();
        ++found;
      }
      EXPECT_GT(found, 0) << ending;
    }
  }

  std::string text() const {
    return "{type: text, path: '" + folder_ / "text.txt" + "', tokenizer: characters, context: 8";
  }
  std::string sentences(const std::string& more = "") const {
    return "{type: labelled_text, train: '" + folder_ / "sentences.txt" +
           "', tokenizer: words, cls: true, max_length: 12" + more + "}";
  }
  static std::string bert(const std::string& more) {
    return "{type: bert, hidden_size: 8, num_hidden_layers: 2, num_attention_heads: 2, "
           "intermediate_size: 16, max_position_embeddings: 12" +
           more + "}";
  }

  const TemporaryFolder folder_;
};

TEST_F(ProductRows, OfTablesAreExamples) {
  const auto e = build("{type: synthetic, features: 6, classes: 3, train_size: 40, test_size: 8}",
                       "[{type: linear, name: a, out_features: 5}, relu, "
                       "{type: linear, name: b, out_features: 3}]");
  expect_rows(*e, {{"a.weight", 4}, {"b.weight", 4}});
}

TEST_F(ProductRows, OfTransformersAreTokens) {
  expect_rows(
      *build(text() + "}", "{type: gpt2, n_embd: 8, n_layer: 2, n_head: 2, n_positions: 8}"),
      {{"attn.c_proj.weight", 4 * 8}, {"mlp.c_fc.weight", 4 * 8}});
  expect_rows(*build(text() + ", mask_token: '_', mask_fraction: 0.2}", bert(", head: masked_lm")),
              {{"attention.self.query.weight", 4 * 8}, {"output.dense.weight", 4 * 8}});
  // 4 × 4 patches and a token for the class, which alone is classified.
  expect_rows(*build("{type: colour_glyphs, train_size: 40, test_size: 8}",
                     "{type: vit, patch_size: 8, hidden_size: 8, num_hidden_layers: 1, "
                     "num_attention_heads: 2, intermediate_size: 16}"),
              {{"intermediate.dense.weight", 4 * 17}, {"classifier.weight", 4}});
}

TEST_F(ProductRows, OfConvolutionsArePlacesOfItsImages) {
  const auto e = build("{type: colour_glyphs, train_size: 40, test_size: 8}",
                       "[{type: conv2d, name: a, out_channels: 4, kernel: 3, stride: 2}, relu, "
                       "flatten, {type: linear, name: b, out_features: 10}]");
  expect_rows(*e, {{"a.weight", 4 * 15 * 15}, {"b.weight", 4}});
  const ParameterPtr weight = e->model->parameter("a.weight");
  EXPECT_EQ(e->sparsity->compression().convolution_of(*weight).batch, 4);
}

// A user's module that does not say what it gives its children is taken as the batch.
TEST_F(ProductRows, OfWhatIsNotKnownAreExamples) {
  CompressionLimits limits;
  limits.batch = 7;
  Parameter parameter(Shape{3, 2}, Initializer::constant(0.0));
  parameter.set_name("own.weight");
  EXPECT_EQ(limits.rows_of(parameter), 7);
  limits.rows["own.weight"] = 0;
  EXPECT_EQ(limits.rows_of(parameter), 1);
}

// Padding behind the shorter ones of a batch is no work of theirs.
TEST_F(ProductRows, OfSentencesAreTheirTokens) {
  const auto e = build(sentences(), bert(", head: classification"));
  const std::span<const int32_t> lengths = e->data.train->lengths();
  ASSERT_EQ(std::accumulate(lengths.begin(), lengths.end(), 0), 24);
  expect_rows(*e, {{"attention.self.query.weight", 4 * 4},
                   {"intermediate.dense.weight", 4 * 4},
                   {"pooler.dense.weight", 4},
                   {"classifier.weight", 4}});
  const auto all = [](const Parameter& p) { return p.numel(); };
  Flops mean;
  for (const int32_t length : lengths) {
    mean += count_flops(module_rows(*e->model, Shape{length}), all);
  }
  EXPECT_DOUBLE_EQ(count_flops(e->rows, all).forward, mean.forward / 6.0);
  EXPECT_DOUBLE_EQ(count_flops(e->rows, all).training, mean.training / 6.0);
  const Flops longest = count_flops(module_rows(*e->model, e->data.train->example_shape()), all);
  EXPECT_LT(mean.forward / 6.0, 0.6 * longest.forward);
}

TEST_F(ProductRows, OfSentencesWithHiddenTokensAreTheirs) {
  const auto e = build(sentences(", mask_fraction: 0.2"), bert(", head: masked_lm"));
  const std::span<const int32_t> lengths = e->data.train->lengths();
  const double tokens = std::accumulate(lengths.begin(), lengths.end(), 0.0) / 6.0;
  expect_rows(*e, {{"attention.self.query.weight", std::llround(4 * tokens)}});
}

}  // namespace
}  // namespace lacuna::product_rows_test
