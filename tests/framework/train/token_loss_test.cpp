// Losses, accuracies and means over tokens that each have a label.
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/loss_function.h"

namespace lacuna::token_loss_test {
namespace {

constexpr int64_t kVocabulary = 4;

// Example i holds three tokens; their labels are 0, 1 and, of odd examples alone, 2.
class Tokens final : public Dataset {
 public:
  int64_t size() const override { return 5; }
  const Shape& example_shape() const override { return shape_; }
  int64_t num_classes() const override { return kVocabulary; }
  int64_t num_outputs() const override { return 0; }
  int64_t vocabulary_size() const override { return kVocabulary; }
  Batch gather(std::span<const int64_t> indices) const override {
    Batch batch;
    batch.size = static_cast<int64_t>(indices.size());
    std::vector<int64_t> ids, labels;
    for (const int64_t i : indices) {
      for (int64_t t = 0; t < 3; ++t) {
        ids.push_back((i + t) % kVocabulary);
        labels.push_back(t == 2 && i % 2 == 0 ? kIgnoredLabel : t);
      }
    }
    batch.named["input_ids"] = IndexTensor(Shape{batch.size, 3}, ids);
    batch.labels = IndexTensor(Shape{batch.size, 3}, labels);
    return batch;
  }

 private:
  Shape shape_{3};
};

// Says class 1 of every token, by logits 0, 2, 0, 0.
class SaysOne final : public Module {
 public:
  std::string_view type() const override { return "says_one"; }

 protected:
  Variable forward(const Variable& input) override {
    Tensor logits = Tensor::zeros(Shape{input.shape()[0], 3, kVocabulary});
    for (int64_t i = 0; i < logits.numel(); i += kVocabulary) logits.mutable_data()[i + 1] = 2.0f;
    return logits;
  }
};

TEST(TokenLoss, WantsAnOutputForEachToken) {
  const LossFunction loss = LossFunction::from_config(Config::map(), Tokens());
  EXPECT_TRUE(loss.has_token_labels());
  EXPECT_EQ(loss.output_shape(), (Shape{3, kVocabulary}));
  EXPECT_FALSE(loss.has_top5());
}

TEST(TokenLoss, EvaluationsAreMeansOverTheLabelsThatCount) {
  const Tokens data;
  const LossFunction loss = LossFunction::from_config(Config::map(), data);
  SaysOne model;
  const double log_sum = std::log(3.0 + std::exp(2.0));
  // Labels 0 and 1 five times, 2 twice.
  const double expected = (7 * log_sum + 5 * (log_sum - 2.0)) / 12.0;
  for (const int64_t batch_size : {1, 2, 5}) {
    const Evaluation result = evaluate(model, loss, data, batch_size);
    EXPECT_NEAR(result.loss, expected, 1e-6);
    EXPECT_DOUBLE_EQ(result.accuracy, 5.0 / 12.0);
    EXPECT_NEAR(result.perplexity, std::exp(expected), 1e-5);
    EXPECT_EQ(result.examples, 5);
  }
}

// A table of tokens may be rounded up; what is beyond the data's tokens is no answer.
TEST(TokenLoss, TakesOutputsThatNoLabelHas) {
  LossFunction loss = LossFunction::from_config(
      Config::map({{"loss", Config::map({{"class_weights", Config::list({1, 2, 1, 1})}})}}),
      Tokens());
  loss.take_outputs(Shape{3, 2});  // too few are told by whoever compares them
  EXPECT_EQ(loss.output_shape(), (Shape{3, 4}));
  loss.take_outputs(Shape{6});
  EXPECT_EQ(loss.output_shape(), (Shape{3, 4}));
  loss.take_outputs(Shape{3, 6});
  EXPECT_EQ(loss.output_shape(), (Shape{3, 6}));
  EXPECT_EQ(loss.outputs(), 6);
  EXPECT_EQ(loss.num_classes(), 4);
  const std::vector<int64_t> one{1};
  const Batch batch = Tokens().gather(one);
  const double equal = static_cast<double>(loss(Tensor::zeros({1, 3, 6}), batch).value().item());
  EXPECT_NEAR(equal, std::log(6.0), 1e-6);
}

}  // namespace
}  // namespace lacuna::token_loss_test
