#include "lacuna/framework/train/loss_function.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/checks/ignored_labels.hpp"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/layers/dropout.h"
#include "lacuna/layers/linear.h"
#include "throws.h"

namespace lacuna::loss_function_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

ArrayDataset classes() {
  return ArrayDataset({.example_shape = {2},
                       .inputs = std::vector<float>{1, 0, 0, 1, 2, 0, 0, 2, 3, 0},
                       .labels = {0, 1, 0, 0, 1},
                       .num_classes = 2});
}

ArrayDataset values() {
  return ArrayDataset({.example_shape = {1},
                       .inputs = std::vector<float>{1, 2, 3},
                       .targets = {2, 4, 7},
                       .num_outputs = 1});
}

ArrayDataset decisions() {
  return ArrayDataset({.example_shape = {1},
                       .inputs = std::vector<float>{1, 2, 3},
                       .targets = {1, 0, 0, 1, 1, 1},
                       .num_outputs = 2});
}

LossFunction read(const std::string& yaml, const Dataset& data) {
  return LossFunction::from_config(parse_yaml(yaml, "l.yaml"), data);
}

TEST(LossFunction, ChoosesByTheDataAndWritesItsChoice) {
  const Config config = Config::map();
  EXPECT_TRUE(LossFunction::from_config(config, classes()).is_classification());
  EXPECT_EQ(config.required<std::string>("loss"), "cross_entropy");
  const Config other = Config::map();
  EXPECT_FALSE(LossFunction::from_config(other, values()).is_classification());
  EXPECT_EQ(other.required<std::string>("loss"), "mse");
}

TEST(LossFunction, ComputesMeansOverABatch) {
  const std::vector<int64_t> one{0};
  const Batch batch = classes().gather(one);
  const Tensor logits = Tensor::from(Shape{1, 2}, std::vector<float>{2.0f, 0.0f});
  // -log softmax(2, 0)[0] = log(1 + e^-2).
  const double plain = std::log1p(std::exp(-2.0));
  EXPECT_NEAR(read("loss: cross_entropy", classes())(logits, batch).value().item(), plain, 1e-6);
  // Smoothing 0.5 gives each class 0.25 more weight: 0.75·plain + 0.25·(plain + 2).
  const LossFunction smooth = read("loss: {type: cross_entropy, label_smoothing: 0.5}", classes());
  EXPECT_NEAR(smooth(logits, batch).value().item(), plain + 0.5, 1e-6);
  const Tensor predicted = Tensor::from(Shape{1, 1}, std::vector<float>{5.0f});
  EXPECT_EQ(read("loss: mse", values())(predicted, values().gather(one)).value().item(), 9.0f);
}

// Whoever reports a loss or a perplexity means that of the labels.
TEST(LossFunction, EvaluatesWithoutSmoothing) {
  const std::vector<int64_t> one{0};
  const Batch batch = classes().gather(one);
  const Tensor logits = Tensor::from(Shape{1, 2}, std::vector<float>{2.0f, 0.0f});
  const LossFunction smooth =
      read("loss: {label_smoothing: 0.5, class_weights: [1, 2]}", classes()).for_evaluation();
  const LossFunction plain = read("loss: {class_weights: [1, 2]}", classes());
  EXPECT_EQ(smooth(logits, batch).value().item(), plain(logits, batch).value().item());

  class Fixed final : public Module {
   public:
    std::string_view type() const override { return "fixed"; }

   protected:
    Variable forward(const Variable& input) override { return input; }
  } model;
  const ArrayDataset data = classes();
  EXPECT_EQ(evaluate(model, read("loss: {label_smoothing: 0.5}", data), data, 2).loss,
            evaluate(model, read("loss: cross_entropy", data), data, 2).loss);
}

TEST(LossFunction, WeighsClasses) {
  const ArrayDataset data = classes();
  const std::vector<int64_t> both{0, 1};  // labels 0 and 1
  const Batch batch = data.gather(both);
  const Tensor logits = Tensor::from(Shape{2, 2}, std::vector<float>{2.0f, 0.0f, 2.0f, 0.0f});
  const LossFunction loss = read("loss: {type: cross_entropy, class_weights: [3, 0.5]}", data);
  const double right = std::log1p(std::exp(-2.0)), wrong = right + 2.0;
  EXPECT_NEAR(loss(logits, batch).value().item(), (3.0 * right + 0.5 * wrong) / 3.5, 1e-6);
  EXPECT_EQ(loss.weight_of(batch), 3.5);
  EXPECT_EQ(read("loss: cross_entropy", data).weight_of(batch), 2.0);
}

// As if the examples of that label were not there, in batches of any size; weighed or not.
TEST(LossFunction, LeavesOutAnIgnoredLabel) {
  const Examples all{.example_shape = {2},
                     .inputs = std::vector<float>{1, 0, 0, 1, 2, 0, 0, 2, 3, 0, 1, 1},
                     .labels = {0, 1, 2, 0, 2, 1},
                     .num_classes = 3};
  const Examples others{.example_shape = {2},
                        .inputs = std::vector<float>{1, 0, 0, 1, 0, 2, 1, 1},
                        .labels = {0, 1, 0, 1},
                        .num_classes = 3};
  DataSplits splits;
  splits.train = std::make_shared<const ArrayDataset>(all);
  Sequential model;
  model.add<Linear>("fc", {.in_features = 2, .out_features = 3, .bias = false});
  model.parameter("fc.weight")
      ->assign(Tensor::from(Shape{3, 2}, std::vector<float>{1, 0, 0, 1, 0.5f, -1}));
  for (const std::string weights : {"", ", class_weights: [3, 0.5, 7]"}) {
    const LossFunction loss =
        read("loss: {type: cross_entropy, ignore_index: 2" + weights + "}", *splits.train);
    const DataSplits data = with_ignored_label(splits, loss.ignored_label().value());
    ASSERT_EQ(data.test, nullptr);
    const LossFunction plain =
        read(weights.empty() ? "loss: cross_entropy" : "loss: {type: cross_entropy" + weights + "}",
             *splits.train);
    const Evaluation expected = evaluate(model, plain, ArrayDataset(others), 4);
    for (const int64_t batch : {1, 4, 6}) {
      const Evaluation found = evaluate(model, loss, *data.train, batch);
      EXPECT_NEAR(found.loss, expected.loss, 1e-6);
      EXPECT_EQ(found.accuracy, expected.accuracy);
    }
    std::vector<int64_t> indices{0, 1, 2, 3, 4, 5};
    const Batch batch = data.train->gather_for_training(indices, 0, 0);
    EXPECT_EQ(loss.answers_of(batch), 4);
    EXPECT_EQ(loss.weight_of(batch), weights.empty() ? 4.0 : 7.0);
  }
  expect_throws<ConfigError>(
      [&] { read("loss: {ignore_index: 3}", *splits.train); },
      "loss.ignore_index: expected a class from 0 to 2, or -100, which no example has, found '3'");
  EXPECT_FALSE(read("loss: {ignore_index: -100}", *splits.train).ignored_label().has_value());
}

TEST(LossFunction, DecidesByTheSignWithBinaryCrossEntropy) {
  const ArrayDataset data = decisions();
  const LossFunction loss = read("loss: binary_cross_entropy", data);
  EXPECT_FALSE(loss.is_classification());
  EXPECT_TRUE(loss.has_accuracy());
  EXPECT_EQ(loss.outputs(), 2);
  EXPECT_EQ(loss.answers(), 2);
  EXPECT_EQ(loss.num_classes(), 0);
  const std::vector<int64_t> all{0, 1, 2};
  const Batch batch = data.gather(all);
  const Tensor logits = Tensor::from(Shape{3, 2}, std::vector<float>{1, -1, 1, 0, kNan, 2});
  EXPECT_EQ(loss.count_correct(logits, batch), 3);  // 1, -1 and 2: 0 is no yes
  const Tensor zeros = Tensor::zeros(Shape{3, 2});
  EXPECT_NEAR(loss(zeros, batch).value().item(), std::log(2.0), 1e-6);
}

TEST(LossFunction, TakesTheLabelsOfTwoClassesForOneOutput) {
  const ArrayDataset data = classes();
  const LossFunction loss = read("loss: {type: binary_cross_entropy}", data);
  EXPECT_EQ(loss.outputs(), 1);
  EXPECT_EQ(loss.answers(), 1);
  EXPECT_EQ(loss.num_classes(), 2);
  const std::vector<int64_t> both{0, 1};
  const Batch batch = data.gather(both);
  const Tensor logits = Tensor::from(Shape{2, 1}, std::vector<float>{1.0f, 3.0f});
  EXPECT_NEAR(loss(logits, batch).value().item(),
              (std::log1p(std::exp(1.0)) + std::log1p(std::exp(-3.0))) / 2.0, 1e-6);
  EXPECT_EQ(loss.count_correct(logits, batch), 1);
  EXPECT_EQ(loss.predicted_classes(logits), (std::vector<int64_t>{1, 1}));
}

TEST(LossFunction, RefusesWhatDoesNotSuitTheData) {
  expect_throws<ConfigError>([] { read("loss: mse", classes()); },
                             "l.yaml:1:7: loss: mse needs regression targets; the data has 2");
  expect_throws<ConfigError>([] { read("loss: cross_entropy", values()); },
                             "cross_entropy needs data with classes; this is regression: use mse");
  expect_throws<ConfigError>([] { read("loss: hinge", classes()); }, "unknown loss 'hinge'");
  const ArrayDataset three({.example_shape = {1},
                            .inputs = std::vector<float>{1, 2, 3},
                            .labels = {0, 1, 2},
                            .num_classes = 3});
  expect_throws<ConfigError>([&] { read("loss: binary_cross_entropy", three); },
                             "l.yaml:1:7: loss: binary_cross_entropy needs two classes, or targets "
                             "of 0 and 1 (regression); the data has 3 classes: use cross_entropy");
  const ArrayDataset percents({.example_shape = {1},
                               .inputs = std::vector<float>{1, 2, 3},
                               .targets = {0.0f, 1.0f, 0.5f, 0.25f, 1.0f, 40.0f},
                               .num_outputs = 2});
  expect_throws<ConfigError>(
      [&] { read("loss: binary_cross_entropy", percents); },
      "l.yaml:1:7: loss: binary_cross_entropy needs targets from 0 to 1, and "
      "training example 2 has 40; use mse, or scale the targets");
  const auto weigh = [](const std::string& weights) {
    read("loss: {type: cross_entropy, class_weights: " + weights + "}", classes());
  };
  expect_throws<ConfigError>([&] { weigh("[1]"); },
                             "loss.class_weights: expected 2 numbers, one for each class, found a "
                             "list of 1");
  expect_throws<ConfigError>([&] { weigh("[1, -1]"); },
                             "loss.class_weights.1: expected a finite number of at least 0, found "
                             "'-1'");
  expect_throws<ConfigError>([&] { weigh("[0, 0]"); }, "expected a weight above 0 for some class");
  expect_throws<ConfigError>(
      [] { read("loss: {type: binary_cross_entropy, class_weights: [1, 3]}", classes()); },
      "loss.class_weights: belongs to cross_entropy, and the loss is binary_cross_entropy");
  expect_throws<ConfigError>([] { read("loss: {type: mse, label_smoothing: 0.1}", values()); },
                             "loss.label_smoothing: belongs to cross_entropy");
}

TEST(ArgmaxRows, TakesTheFirstAmongEquals) {
  const Tensor logits = Tensor::from(Shape{3, 3}, std::vector<float>{1, 3, 3, -1, -2, -3, 0, 0, 0});
  EXPECT_EQ(argmax_rows(logits), (std::vector<int64_t>{1, 0, 0}));
}

TEST(CountCorrect, NeverCountsARowWithNan) {
  const auto count = [](const std::vector<float>& logits, int64_t label) {
    const IndexTensor labels = IndexTensor(Shape{1}, std::vector<int64_t>{label});
    return count_correct(Tensor::from(Shape{1, 2}, logits), labels);
  };
  EXPECT_EQ(count({1, 0}, 0), 1);
  EXPECT_EQ(count({1, 0}, 1), 0);
  EXPECT_EQ(count({kNan, 0}, 0), 0);
  EXPECT_EQ(count({0, kNan}, 0), 0);
  EXPECT_EQ(count({kNan, kNan}, 0), 0);
}

TEST(CountInLargest, CountsLabelsAmongTheLargest) {
  const std::vector<float> row{5, 4, 3, 3, 2, 1, 0};
  const auto count = [&](int64_t label, int64_t most, std::vector<float> logits) {
    return count_in_largest(Tensor::from(Shape{1, 7}, logits),
                            IndexTensor(Shape{1}, std::vector<int64_t>{label}), most);
  };
  EXPECT_EQ(count(4, 5, row), 1);
  EXPECT_EQ(count(5, 5, row), 0);
  EXPECT_EQ(count(2, 3, row), 1);  // of equals the first
  EXPECT_EQ(count(3, 3, row), 0);
  EXPECT_EQ(count(3, 4, row), 1);
  EXPECT_EQ(count(0, 5, {5, 4, kNan, 3, 2, 1, 0}), 0);
}

TEST(Evaluate, WeighsExamplesTheSameInAnyBatches) {
  Sequential model;
  model.add<Linear>("fc", {.in_features = 2, .out_features = 2, .bias = false});
  model.parameter("fc.weight")->assign(Tensor::from(Shape{2, 2}, std::vector<float>{1, 0, 0, 1}));
  const ArrayDataset data = classes();
  const LossFunction loss = read("loss: {type: cross_entropy, class_weights: [3, 0.5]}", data);
  const Evaluation whole = evaluate(model, loss, data, 5);
  for (const int64_t batch : {1, 2, 3}) {
    EXPECT_NEAR(evaluate(model, loss, data, batch).loss, whole.loss, 1e-6);
  }
  EXPECT_TRUE(std::isnan(whole.top5_accuracy));  // of two classes
}

TEST(Evaluate, CountsTheFiveLargestAndShowsItsBatches) {
  const ArrayDataset data({.example_shape = {7},
                           .inputs = std::vector<float>{7, 6, 5, 4, 3, 2, 1, 7, 6, 5, 4, 3, 2, 1},
                           .labels = {4, 5},
                           .num_classes = 7});
  Sequential model;
  model.add<Linear>("fc", {.in_features = 7, .out_features = 7, .bias = false});
  std::vector<float> identity(49);
  for (size_t i = 0; i < 7; ++i) identity[8 * i] = 1.0f;
  model.parameter("fc.weight")->assign(Tensor::from(Shape{7, 7}, identity));
  int64_t seen = 0;
  const auto watch = [&](const Tensor& output, const Batch& batch) {
    EXPECT_EQ(output.shape(), (Shape{batch.size, 7}));
    seen += batch.size;
  };
  const LossFunction loss = read("loss: cross_entropy", data);
  const Evaluation result = evaluate(model, loss, data, 1, watch);
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(result.accuracy, 0.0);
  EXPECT_EQ(result.top5_accuracy, 0.5);
}

TEST(Evaluate, IsTheSameForAnyBatchSizeAndRestoresTheMode) {
  Sequential model;
  model.add<Linear>("fc", {.in_features = 2, .out_features = 2, .bias = false});
  model.add<Dropout>("drop", {.p = 0.5});
  model.parameter("fc.weight")->assign(Tensor::from(Shape{2, 2}, std::vector<float>{1, 0, 0, 1}));
  const ArrayDataset data = classes();
  const LossFunction loss = read("loss: cross_entropy", data);
  const Evaluation whole = evaluate(model, loss, data, 5);
  EXPECT_EQ(whole.examples, 5);
  EXPECT_EQ(whole.accuracy, 0.6);
  EXPECT_TRUE(model.training());
  for (const int64_t batch : {1, 2, 3, 1000}) {
    const Evaluation parts = evaluate(model, loss, data, batch);
    EXPECT_NEAR(parts.loss, whole.loss, 1e-6);
    EXPECT_EQ(parts.accuracy, whole.accuracy);
  }
  model.eval();
  evaluate(model, loss, data, 5);
  EXPECT_FALSE(model.training());
  EXPECT_FALSE(model.parameter("fc.weight")->has_gradient());
}

TEST(Evaluate, HasNoAccuracyForRegression) {
  Sequential model;
  model.add<Linear>("fc", {.in_features = 1, .out_features = 1, .bias = false});
  model.parameter("fc.weight")->assign(Tensor::from(Shape{1, 1}, std::vector<float>{2.0f}));
  const Evaluation result = evaluate(model, read("loss: mse", values()), values(), 2);
  EXPECT_NEAR(result.loss, 1.0 / 3, 1e-7);
  EXPECT_TRUE(std::isnan(result.accuracy));
}

TEST(Evaluate, RefusesAnEmptyDataset) {
  Sequential model;
  const ArrayDataset data = classes();
  const auto none = subset(std::make_shared<ArrayDataset>(data), {});
  expect_throws<DataError>([&] { evaluate(model, read("loss: cross_entropy", data), *none, 5); },
                           "no examples");
}

}  // namespace
}  // namespace lacuna::loss_function_test
