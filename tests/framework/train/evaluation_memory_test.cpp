// What an evaluation holds at most, counted in bytes of buffers, whatever train.eval_batch_size is;
// that its results do not depend on the pieces it is made in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/train/tiny_convolution.h"
#include "framework/train/tiny_sequences.h"
#include "lacuna/framework/core/buffer.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/inference/example_pieces.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/run_model.hpp"
#include "lacuna/layers/linear.h"
#include "temporary_folder.h"

namespace lacuna::evaluation_memory_test {
namespace {

struct Network {
  std::string name, config;
  /// Of the pieces' bytes, what may be held.
  double most = 1.2;
};

const std::string kText =
    "data: {type: text, path: TEXT, tokenizer: words, context: 32, test: 0.25}\n";
// A vocabulary that the text does not need: its logits are most of what is held.
const std::string kManyTokens =
    "model: {type: gpt2, vocab_size: 20000, n_embd: 16, n_layer: 1, n_head: 2, n_positions: 32}\n";
const std::string kConvolutions =
    "data: {type: colour_glyphs, train_size: 4, test_size: 400}\nmodel:" +
    std::string(kBasicBlock) + R"(  layers:
    - {type: conv2d, name: conv1, out_channels: 16, kernel: 3, padding: 1, bias: false}
    - {type: batch_norm, name: bn1}
    - relu
    - {type: block, name: layer1, repeat: 2, channels: 16}
    - {type: block, name: layer2, repeat: 2, channels: 32, first: {stride: 2}}
    - global_average_pool
    - {type: linear, name: linear, out_features: 10}
)";

std::vector<Network> networks() {
  return {
      {"wide",
       "data: {type: glyphs, train_size: 4, test_size: 1000}\n"
       "model: [flatten, {type: linear, name: a, out_features: 16}, {type: linear, name: b, "
       "out_features: 20000}, relu,"
       " {type: linear, out_features: 10}]\n"},
      {"convolutions", kConvolutions, 2.2},  // their products transform images into tiles
      {"sparse_convolutions",
       kConvolutions + "sparsity: {sparsity: 0.9, layout: csr, param_filter: 'layer*.conv*'}\n"},
      {"sequences", "data: {type: glyphs, train_size: 4, test_size: 12000}\nmodel:" +
                        std::string(kTinySequenceModel)},
      {"tokens", kText + kManyTokens},
      {"llama", kText + "model: {type: llama, hidden_size: 64, intermediate_size: 512,"
                        " num_hidden_layers: 2, num_attention_heads: 4}\n"},
  };
}

class EvaluationMemory : public testing::TestWithParam<Network> {
 protected:
  // On one thread: each has scratch memory of its own.
  EvaluationMemory() {
    set_num_threads(1);
    std::string text;
    for (int i = 0; i < 40000; ++i) text += "word" + std::to_string(i * i % 97) + " ";
    folder_.write("text.txt", text);
  }
  ~EvaluationMemory() override { set_num_threads(before_); }

  std::unique_ptr<Experiment> build(std::string config, int64_t eval_batch_size) const {
    if (const size_t at = config.find("TEXT"); at != std::string::npos) {
      config.replace(at, 4, folder_ / "text.txt");
    }
    return build_experiment(
        parse_yaml(config +
                       "optimizer: {type: sgd, lr: 0.1}\ntrain: {steps: 1, batch_size: 2,"
                       " seed: 3, eval_batch_size: " +
                       std::to_string(eval_batch_size) + "}\n",
                   "e.yaml"));
  }

  static Evaluation evaluation(Experiment& e) {
    return evaluate(*e.model, e.loss, *e.data.test, e.train.eval_batch_size);
  }

  TemporaryFolder folder_;

 private:
  const int before_ = num_threads();
};

void expect_equal(const Evaluation& a, const Evaluation& b) {
  EXPECT_EQ(a.examples, b.examples);
  EXPECT_NEAR(a.loss, b.loss, 1e-6 * std::abs(b.loss));
  EXPECT_EQ(a.accuracy, b.accuracy);
}

TEST_P(EvaluationMemory, IsWhatThePiecesSayForAnyBatchSize) {
  const auto e = build(GetParam().config, 100000);
  const ExamplePieces pieces =
      example_pieces(*e->model, e->data.test->example_shape(), e->train.eval_batch_size);
  ASSERT_LT(pieces.examples, e->data.test->size());
  EXPECT_LE(pieces.bytes, kPieceBytes);
  try_evaluation(*e->model, e->loss, *e->data.test, e->train.eval_batch_size);
  const int64_t before = memory_stats().current;
  reset_memory_peak();
  const Evaluation whole = evaluation(*e);
  const double share = static_cast<double>(memory_stats().peak - before) / pieces.bytes;
  RecordProperty("share", std::to_string(share));
  EXPECT_GT(share, 0.6);  // else it does not count what it means to
  EXPECT_LT(share, GetParam().most);
  for (const int64_t batch : {int64_t{7}, pieces.examples, pieces.examples + 1}) {
    SCOPED_TRACE(batch);
    e->train.eval_batch_size = batch;
    expect_equal(evaluation(*e), whole);
  }
}

using OneBigExample = EvaluationMemory;

// One example's logits are too many: the last layer takes some tokens at a time.
TEST_P(OneBigExample, IsEvaluatedInRows) {
  const auto e = build(GetParam().config, 5);
  const Shape& example = e->data.test->example_shape();
  const ExamplePieces pieces = example_pieces(*e->model, example, 5);
  ASSERT_GT(pieces.rows, 0);
  ASSERT_LT(pieces.rows, example[0]);
  const int64_t before = memory_stats().current;
  reset_memory_peak();
  const Evaluation result = evaluation(*e);
  const double share = static_cast<double>(memory_stats().peak - before) / pieces.bytes;
  EXPECT_GT(share, 0.6);
  EXPECT_LT(share, GetParam().most);
  EXPECT_LE(memory_stats().largest, static_cast<int64_t>(kPieceBytes));
  e->model->eval();
  const NoGrad no_grad;
  double loss = 0.0, weight = 0.0, correct = 0.0, answers = 0.0;
  for (int64_t i = 0; i < e->data.test->size(); ++i) {
    const Batch batch = e->data.test->gather({&i, 1});
    const Variable output = run_for_loss(*e->model, batch);
    const double own = e->loss.weight_of(batch);
    loss += own * static_cast<double>(e->loss(output, batch).value().item());
    weight += own;
    correct += static_cast<double>(e->loss.count_correct(output.value(), batch));
    answers += static_cast<double>(e->loss.answers_of(batch));
  }
  EXPECT_EQ(result.examples, e->data.test->size());
  EXPECT_NEAR(result.loss, loss / weight, 1e-6 * result.loss);
  EXPECT_EQ(result.accuracy, correct / answers);
}

const std::string kLong =
    "data: {type: text, path: TEXT, tokenizer: words, context: 512, test: 0.04MASKED}\n";

std::vector<Network> with_big_examples() {
  const auto data = [](const std::string& masked) {
    std::string text = kLong;
    return text.replace(text.find("MASKED"), 6, masked);
  };
  return {
      {"gpt2", data("") + "model: {type: gpt2, vocab_size: 40000, n_embd: 8, n_layer: 1, n_head: 2,"
                          " n_positions: 512, initializer_range: 0.5}\n"},
      {"untied", data("") +
                     "model: {type: llama, vocab_size: 40000, hidden_size: 8, intermediate_size: 8,"
                     " num_hidden_layers: 1, num_attention_heads: 2, initializer_range: 0.5}\n"},
      {"bert", data(", mask_token: '_', mask_fraction: 0.95") +
                   "model: {type: bert, head: masked_lm, vocab_size: 40000, hidden_size: 8,"
                   " num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 8,"
                   " max_position_embeddings: 512, initializer_range: 0.5}\n"},
  };
}

// Sentences of 1 to 9 tokens, in no order, and which of them were asked for.
class Sentences final : public Dataset {
 public:
  int64_t size() const override { return static_cast<int64_t>(lengths_.size()); }
  const Shape& example_shape() const override { return shape_; }
  std::span<const int32_t> lengths() const override { return lengths_; }
  int64_t num_classes() const override { return 2; }
  int64_t num_outputs() const override { return 0; }
  Batch gather(std::span<const int64_t> indices) const override {
    asked_.emplace_back(indices.begin(), indices.end());
    Batch batch;
    batch.size = static_cast<int64_t>(indices.size());
    batch.inputs = Tensor::zeros(Shape{batch.size, 4});
    batch.labels = IndexTensor(Shape{batch.size}, std::vector<int64_t>(indices.size(), 0));
    return batch;
  }

  mutable std::vector<std::vector<int64_t>> asked_;

 private:
  Shape shape_{4};
  std::vector<int32_t> lengths_{3, 9, 1, 9, 4, 2, 8};
};

TEST(TriedEvaluation, IsOfTheLongestExamples) {
  const Sentences data;
  const LossFunction loss = LossFunction::from_config(Config::map(), data);
  Sequential model;
  model.add<Linear>("a", {.in_features = 4, .out_features = 2});
  try_evaluation(model, loss, data, 3);
  EXPECT_THAT(data.asked_.back(), testing::ElementsAre(1, 3, 6));
  EXPECT_TRUE(model.training());
  const size_t before = data.asked_.size();
  model.register_output_transform([](const Variable& x) { return x; });
  try_evaluation(model, loss, data, 3);  // may draw at random
  EXPECT_EQ(data.asked_.size(), before);
}

INSTANTIATE_TEST_SUITE_P(Networks, OneBigExample, testing::ValuesIn(with_big_examples()),
                         [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(Networks, EvaluationMemory, testing::ValuesIn(networks()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace lacuna::evaluation_memory_test
