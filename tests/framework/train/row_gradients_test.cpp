// Runs of embeddings with sparse_gradient: rows that a batch does not use are left alone, whatever
// the batch is cut into.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "framework/train/training_steps.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/param/row_gradient.h"
#include "lacuna/framework/train/loop/training_step.hpp"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "state_differences.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::row_gradients_test {
namespace {

class RowGradients : public testing::Test {
 protected:
  // 107 words, of which a batch of a few windows of 6 has some.
  RowGradients() {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "w" + std::to_string(i * i * 7 % 211) + " ";
    text_ = folder_.write("text.txt", text);
  }

  std::unique_ptr<Experiment> build(bool sparse, const std::string& rest,
                                    const std::string& embedding = "") const {
    return build_experiment(
        parse_yaml("data: {type: text, tokenizer: words, context: 6, path: " + text_ + "}\n" +
                       "model:\n  - {type: token_embedding, name: wte, features: 5" + embedding +
                       (sparse ? ", sparse_gradient: true" : "") +
                       "}\n  - relu\n  - {type: linear, name: head}\n" + rest,
                   "rows.yaml"));
  }

  TemporaryFolder folder_;
  std::string text_;
};

constexpr const char* kSgd = "optimizer: {type: sgd, lr: 0.5}\n";
constexpr const char* kAdam = "optimizer: {type: adamw, lr: 0.01, clip_norm: 0.1}\n";

// Without momentum and decay a row without a gradient stays as it is, whoever computes it.
TEST_F(RowGradients, GiveTheBitsOfAllRowsWhereTheseWouldNotChange) {
  for (const char* batches : {"shards: 0", "shards: 4", "shards: 3, accumulate: 2", "shards: 8"}) {
    for (const char* embedding : {"", ", padding_id: 3"}) {
      const std::string rest =
          std::string(kSgd) + "train: {steps: 9, batch_size: 4, " + batches + ", seed: 2}\n";
      const auto sparse = build(true, rest, embedding), whole = build(false, rest, embedding);
      take_steps(*sparse, 5);
      take_steps(*whole, 5);
      EXPECT_THAT(differences(sparse->model->state_dict(), whole->model->state_dict()),
                  testing::IsEmpty())
          << batches << embedding;
    }
  }
}

TEST_F(RowGradients, HoldNoMoreThanTheTokensOfTheStep) {
  for (const char* batches : {"shards: 0", "shards: 2", "shards: 2, accumulate: 3"}) {
    const auto e = build(
        true, std::string(kAdam) + "train: {steps: 9, batch_size: 2, " + batches + ", seed: 2}\n");
    const ParameterPtr table = e->model->parameter("wte.weight");
    e->model->train();
    run_batches(*e);
    ASSERT_NE(table->row_gradient(), nullptr) << batches;
    const int64_t tokens = 2 * 6 * e->train.accumulate;
    const auto rows = static_cast<int64_t>(table->row_gradient()->rows.size());
    EXPECT_GT(rows, 0);
    EXPECT_LE(rows, tokens);
    EXPECT_GT(table->shape()[0], 2 * tokens);
    EXPECT_EQ(table->byte_counts().gradient, rows * (5 * 4 + 8));
    const std::vector<float> before = table->values().to_vector();
    const std::vector<int64_t> used = table->row_gradient()->rows;
    e->optimizer->step();
    const std::vector<float> after = table->values().to_vector();
    for (size_t i = 0; i < after.size(); ++i) {
      const auto row = static_cast<int64_t>(i / 5);
      EXPECT_TRUE(std::ranges::binary_search(used, row) || after[i] == before[i])
          << batches << ", row " << row;
    }
    EXPECT_NE(after, before);
  }
}

TEST_F(RowGradients, GiveTheSameBitsOnAnyNumberOfThreads) {
  const int before = num_threads();
  const std::string rest =
      std::string(kAdam) + "train: {steps: 9, batch_size: 16, shards: 4, seed: 2}\n";
  set_num_threads(1);
  const auto one = build(true, rest);
  take_steps(*one, 5);
  set_num_threads(4);
  const auto four = build(true, rest);
  take_steps(*four, 5);
  set_num_threads(before);
  EXPECT_THAT(differences(one->state_dict(), four->state_dict()), testing::IsEmpty());
}

TEST_F(RowGradients, GoOnFromACheckpointToTheSameBits) {
  const std::string rest = std::string(kAdam) +
                           "train: {steps: 9, batch_size: 4, shards: 2, seed: 2}\n"
                           "sparsity: {algorithm: gmp, param_filter: [wte.weight], update: {freq: "
                           "2}, sparsity: {type: linear, init: 0.1, slope: 0.1}}\n";
  const auto whole = build(true, rest), resumed = build(true, rest);
  take_steps(*whole, 3);
  ASSERT_NE(whole->model->parameter("wte.weight")->pattern()->nnz(),
            whole->model->parameter("wte.weight")->numel());
  resumed->load_state_dict(whole->state_dict());
  take_steps(*whole, 3);
  take_steps(*resumed, 3);
  EXPECT_THAT(differences(whole->model->state_dict(), resumed->model->state_dict()),
              testing::IsEmpty());
  EXPECT_THAT(differences(whole->optimizer->state_dict(), resumed->optimizer->state_dict()),
              testing::IsEmpty());
}

// Growth by gradient sees all rows at its updates, and the steps between them cost few.
TEST_F(RowGradients, WorkUnderSparsityAlgorithms) {
  for (const char* algorithm : {"static, sparsity: 0.5", "set, sparsity: 0.5, update: {freq: 2}",
                                "rigl, sparsity: 0.5, update: {freq: 2}"}) {
    const std::string rest = std::string(kSgd) + "train: {steps: 9, batch_size: 4, seed: 2}\n" +
                             "sparsity: {param_filter: [wte.weight], algorithm: " + algorithm +
                             "}\n";
    const auto sparse = build(true, rest), whole = build(false, rest);
    take_steps(*sparse, 5);
    take_steps(*whole, 5);
    EXPECT_THAT(differences(sparse->model->state_dict(), whole->model->state_dict()),
                testing::IsEmpty())
        << algorithm;
  }
}

TEST_F(RowGradients, RefuseAlgorithmsThatTrainADenseMaster) {
  expect_throws<ConfigError>(
      [&] {
        build(true, std::string(kSgd) +
                        "train: {steps: 9, batch_size: 4}\n"
                        "sparsity: {param_filter: [wte.weight], algorithm: ste, sparsity: 0.5}\n");
      },
      "ste needs the whole gradient of 'wte.weight' at each step, but it is sparse: remove "
      "sparse_gradient from its layer, or the parameter from param_filter");
}

// The key of a preset is that of its embedding, and all else of the model stays.
TEST_F(RowGradients, AreThoseOfPresetsToo) {
  const struct {
    std::string model, table;
  } presets[] = {
      {"type: gpt2, n_layer: 1, n_head: 2, n_embd: 8, tie_word_embeddings: false",
       "transformer.wte.weight"},
      {"type: llama, num_hidden_layers: 1, num_attention_heads: 2, hidden_size: 8, "
       "intermediate_size: 12",
       "model.embed_tokens.weight"},
      {"type: bert, head: masked_lm, num_hidden_layers: 1, num_attention_heads: 2, hidden_size: 8, "
       "intermediate_size: 12, tie_word_embeddings: false",
       "bert.embeddings.word_embeddings.weight"},
      {"type: distilbert, head: masked_lm, n_layers: 1, n_heads: 2, dim: 8, tie_word_embeddings: "
       "false",
       "distilbert.embeddings.word_embeddings.weight"}};
  for (const auto& preset : presets) {
    const bool is_masked = preset.model.find("masked_lm") != std::string::npos;
    const auto build_with = [&](const std::string& key) {
      return build_experiment(
          parse_yaml("data: {type: text, tokenizer: words, context: 6, path: " + text_ +
                         (is_masked ? ", mask_fraction: 0.2" : "") + "}\nmodel: {" + preset.model +
                         key + "}\n" + kSgd + "train: {steps: 9, batch_size: 2, seed: 2}\n",
                     "rows.yaml"));
    };
    const auto sparse = build_with(", sparse_gradient: true"), whole = build_with("");
    sparse->model->train();
    run_batches(*sparse);
    const RowGradient* rows = sparse->model->parameter(preset.table)->row_gradient();
    ASSERT_NE(rows, nullptr) << preset.model;
    EXPECT_LE(rows->rows.size(), 2u * 6u);
    const auto again = build_with(", sparse_gradient: true");
    take_steps(*again, 5);
    take_steps(*whole, 5);
    EXPECT_THAT(differences(again->model->state_dict(), whole->model->state_dict()),
                testing::IsEmpty())
        << preset.model;
  }
  expect_throws<ConfigError>(
      [&] {
        build_experiment(
            parse_yaml("data: {type: text, tokenizer: words, context: 6, path: " + text_ +
                           "}\nmodel:\n  type: gpt2\n  n_layer: 1\n  n_head: 2\n  n_embd: 8\n"
                           "  sparse_gradient: true\n" +
                           kSgd + "train: {steps: 2}\n",
                       "rows.yaml"));
      },
      "rows.yaml:7:20: model.sparse_gradient: 'lm_head' is tied to 'transformer.wte', so every "
      "row");
}

TEST_F(RowGradients, RefuseATiedHeadAtItsPlace) {
  expect_throws<ConfigError>(
      [&] {
        build_experiment(
            parse_yaml("data: {type: text, tokenizer: words, context: 6, path: " + text_ +
                           "}\nmodel:\n  - {type: token_embedding, name: wte, "
                           "features: 5, sparse_gradient: true}\n  - {type: linear, "
                           "name: head, tied_to: wte}\n" +
                           kSgd + "train: {steps: 2}\n",
                       "rows.yaml"));
      },
      "rows.yaml:4:5: model.1: linear: every row of 'wte.weight' gets a gradient, because a linear "
      "layer is tied to it; leave out sparse_gradient there, or give the linear layer its own "
      "weight");
}

}  // namespace
}  // namespace lacuna::row_gradients_test
