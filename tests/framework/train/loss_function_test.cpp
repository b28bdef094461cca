#include "lacuna/framework/train/loss_function.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/layers/dropout.h"
#include "lacuna/layers/linear.h"
#include "throws.h"

namespace lacuna {
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

TEST(LossFunction, RefusesWhatDoesNotSuitTheData) {
  expect_throws<ConfigError>([] { read("loss: mse", classes()); },
                             "l.yaml:1:7: loss: mse needs regression targets; the data has 2");
  expect_throws<ConfigError>([] { read("loss: cross_entropy", values()); },
                             "cross_entropy needs data with classes; this is regression: use mse");
  expect_throws<ConfigError>([] { read("loss: hinge", classes()); }, "unknown loss 'hinge'");
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
}  // namespace lacuna
