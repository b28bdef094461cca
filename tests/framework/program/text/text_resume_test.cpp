// Runs on text that are killed, time and again, and resumed end as those that never were.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::text_resume_test {
namespace {

constexpr int kKill = -9;
constexpr int64_t kSteps = 18;

constexpr const char* kTraining = R"(
optimizer: {type: adamw, lr: 0.01, weight_decay: 0.1, no_decay: [bias, norm], warmup: 3, clip_norm: 1.0}
train: {steps: 18, batch_size: 8, log_every: 4, eval_every: 6, checkpoint: {every: 5}, threads: 2}
)";

constexpr const char* kGpt = R"(
data: {type: text, path: PATH, tokenizer: characters, context: 16, validation: 0.2, test: 0.1}
model: {type: gpt2, n_layer: 2, n_head: 2, n_embd: 16, n_positions: 16}
sparsity: {algorithm: rigl, sparsity: 0.6, layout: LAYOUT, update: {freq: 3}}
)";

constexpr const char* kBert = R"(
data: {type: labelled_text, train: PATH, tokenizer: words, max_length: 12, validation: 20}
model: {type: bert, hidden_size: 16, num_hidden_layers: 2, num_attention_heads: 2,
        intermediate_size: 32, max_position_embeddings: 12, pooling: mean, sparse_gradient: true}
sparsity: {algorithm: set, sparsity: 0.6, layout: LAYOUT, update: {freq: 3},
           param_filter: ["bert.encoder.*.dense.weight", "bert.encoder.*.self.*.weight"]}
)";

constexpr const char* kMaskedBert = R"(
data: {type: text, path: PATH, tokenizer: words, context: 12, mask_fraction: 0.15, validation: 0.2}
model: {type: bert, head: masked_lm, hidden_size: 16, num_hidden_layers: 2, num_attention_heads: 2,
        intermediate_size: 32, max_position_embeddings: 12}
sparsity: {algorithm: rigl, sparsity: 0.6, layout: LAYOUT, update: {freq: 3},
           param_filter: ["bert.encoder.*.dense.weight", "bert.encoder.*.self.*.weight"]}
)";

constexpr const char* kMaskedSentences = R"(
data: {type: labelled_text, train: PATH, tokenizer: words, max_length: 12, mask_fraction: 0.15,
       validation: 20}
model: {type: distilbert, head: masked_lm, dim: 16, n_layers: 2, n_heads: 2, hidden_dim: 32,
        max_position_embeddings: 12}
sparsity: {algorithm: rigl, sparsity: 0.6, layout: LAYOUT, update: {freq: 3},
           param_filter: ["*.ffn.*.weight"]}
)";

// Rows of a table, of which each batch uses some, and a sparse head.
constexpr const char* kRows = R"(
data: {type: text, path: PATH, tokenizer: words, context: 4, validation: 0.2, test: 0.1}
model:
  - {type: token_embedding, name: table, features: 12, sparse_gradient: true}
  - relu
  - {type: linear, name: head}
sparsity: {algorithm: rigl, sparsity: 0.6, layout: LAYOUT, update: {freq: 3}, param_filter: head.weight}
)";

// One mask, of the embedding and the head that is tied to it.
constexpr const char* kTied = R"(
data: {type: text, path: PATH, tokenizer: words, context: 4, validation: 0.2, test: 0.1}
model:
  - {type: token_embedding, name: table, features: 12}
  - relu
  - {type: linear, name: head, tied_to: table}
sparsity: {algorithm: rigl, sparsity: 0.6, layout: LAYOUT, update: {freq: 3}, param_filter: table.weight}
)";

struct Variant {
  std::string name;
  const char* yaml;
  bool is_labelled;
};

class TextResume : public RunFixture, public testing::WithParamInterface<Variant> {};

TEST_P(TextResume, EndsAsAWholeRun) {
  std::string text;
  for (int i = 0; i < 80; ++i) {
    if (GetParam().is_labelled) text += i % 3 == 0 ? "1 " : "0 ";
    if (GetParam().yaml == kRows) text += "line " + std::to_string(i * 37 % 80) + " ";
    text += i % 3 == 0 ? "to be or not to be\n" : "that is the question or is it not\n";
  }
  write_text(folder_ / "text.txt", text);
  for (const std::string layout : {"csr", "masked"}) {
    std::string yaml = GetParam().yaml;
    yaml.replace(yaml.find("PATH"), 4, folder_ / "text.txt");
    yaml.replace(yaml.find("LAYOUT"), 6, layout);
    write_text(config(), yaml + kTraining);
    const std::string whole = "whole_" + layout, killed = "killed_" + layout;
    const Ended done = train({}, whole);
    ASSERT_EQ(done.code, 0) << done.err;
    EXPECT_EQ(train({}, killed, {.fault = "step.between:7"}).code, kKill);
    for (const char* fault : {"step.after_backward:3", "checkpoint.half_written:1",
                              "step.before_update:5", "run.before_summary:1"}) {
      const Ended ended = train({"--resume"}, killed, {.fault = fault});
      EXPECT_EQ(ended.code, kKill) << fault << ": " << ended.err;
    }
    EXPECT_EQ(train({"--resume"}, killed).code, 0);
    EXPECT_THAT(differences(read_checkpoint(checkpoint(kSteps, killed)).state,
                            read_checkpoint(checkpoint(kSteps, whole)).state),
                testing::IsEmpty());
    EXPECT_EQ(timeless_events(run_dir(killed)), timeless_events(run_dir(whole)));
    const Config a = summary(run_dir(killed)), b = summary(run_dir(whole));
    for (const char* key : {"validation_loss", "train_loss", "steps", "nnz"}) {
      EXPECT_EQ(a.at(key).text(), b.at(key).text()) << key;
    }
    EXPECT_EQ(a.get("bits_per_character").text(), b.get("bits_per_character").text());
  }
}

INSTANTIATE_TEST_SUITE_P(, TextResume,
                         testing::Values(Variant{"Gpt", kGpt, false}, Variant{"Bert", kBert, true},
                                         Variant{"MaskedBert", kMaskedBert, false},
                                         Variant{"MaskedSentences", kMaskedSentences, true},
                                         Variant{"UsedRows", kRows, false},
                                         Variant{"SparseTiedHead", kTied, false}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace lacuna::text_resume_test
