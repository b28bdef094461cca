#include "lacuna/layers/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/kernels/test_values.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "throws.h"

namespace lacuna::batch_norm_test {
namespace {

// Channel 0: 1, 3, 5, 7, of mean 4 and variances 5 (population) and 20/3 (sample); channel 1 is ten
// times that.
Tensor images() {
  return Tensor::from({2, 2, 1, 2}, std::vector<float>{1, 3, 10, 30, 5, 7, 50, 70});
}

struct Normed {
  explicit Normed(BatchNorm::Options options = {.channels = 2})
      : norm(model.add<BatchNorm>("norm", options)) {}

  std::vector<float> operator()(const Tensor& x) { return model(x).value().to_vector(); }
  std::vector<float> mean() const { return norm.running_mean().to_vector(); }
  std::vector<float> variance() const { return norm.running_var().to_vector(); }

  Sequential model;
  BatchNorm& norm;
};

void expect_near(const std::vector<float>& found, const std::vector<double>& expected) {
  EXPECT_LE(test::largest_error(found, expected), 1e-6);  // a few roundings of float32
}

// (x − mean) / √(variance + eps) of channel 0, whose values the layer's images are.
double of(double x, double mean, double variance) {
  return (x - mean) / std::sqrt(variance + 1e-5);
}

TEST(BatchNormLayer, NormalizesByTheBatchWhileTraining) {
  Normed m;
  EXPECT_EQ(m.norm.type(), "batch_norm");
  EXPECT_EQ(m.norm.weight()->name(), "norm.weight");
  EXPECT_EQ(m.norm.weight()->values().to_vector(), std::vector<float>(2, 1.0f));
  EXPECT_EQ(m.norm.bias()->values().to_vector(), std::vector<float>(2, 0.0f));
  m.norm.weight()->assign(Tensor::from({2}, std::vector<float>{2.0f, 1.0f}));
  m.norm.bias()->assign(Tensor::from({2}, std::vector<float>{0.5f, 0.0f}));
  expect_near(m(images()),
              {2 * of(1, 4, 5) + 0.5, 2 * of(3, 4, 5) + 0.5, of(10, 40, 500), of(30, 40, 500),
               2 * of(5, 4, 5) + 0.5, 2 * of(7, 4, 5) + 0.5, of(50, 40, 500), of(70, 40, 500)});
}

TEST(BatchNormLayer, RunningMomentsFollowTheBatchAndTheSamplesVariance) {
  Normed m;
  EXPECT_EQ(m.mean(), std::vector<float>(2, 0.0f));
  EXPECT_EQ(m.variance(), std::vector<float>(2, 1.0f));
  m(images());
  expect_near(m.mean(), {0.4, 4.0});
  expect_near(m.variance(), {0.9 + 0.1 * 20 / 3, 0.9 + 10 * 20.0 / 3});
  m(images());
  expect_near(m.mean(), {0.9 * 0.4 + 0.4, 0.9 * 4.0 + 4.0});
  expect_near(m.variance(), {0.9 * (0.9 + 0.1 * 20 / 3) + 0.1 * 20 / 3,
                             0.9 * (0.9 + 10 * 20.0 / 3) + 10 * 20.0 / 3});
}

TEST(BatchNormLayer, MomentumIsWhatABatchCounts) {
  Normed none({.channels = 2, .momentum = 0.0}), all({.channels = 2, .momentum = 1.0});
  none(images());
  EXPECT_EQ(none.mean(), std::vector<float>(2, 0.0f));
  EXPECT_EQ(none.variance(), std::vector<float>(2, 1.0f));
  all(images());
  expect_near(all.mean(), {4.0, 40.0});
  expect_near(all.variance(), {20.0 / 3, 2000.0 / 3});
}

TEST(BatchNormLayer, EvaluatesByTheRunningMomentsAndLeavesThem) {
  Normed m;
  m(images());
  const double mean = 0.4, variance = 0.9 + 0.1 * 20 / 3;
  m.model.eval();
  const std::vector<float> y = m(images());
  EXPECT_NEAR(y[0], of(1, mean, variance), 1e-6);
  EXPECT_NEAR(y[5], of(7, mean, variance), 1e-6);
  expect_near(m.mean(), {0.4, 4.0});
  // One example alone, and none, are no trouble then.
  EXPECT_EQ(m(Tensor::from({1, 2}, std::vector<float>{1, 10}))[0], y[0]);
  EXPECT_TRUE(m(Tensor::zeros({0, 2})).empty());
  m.model.train();
  expect_near(m(images()), {of(1, 4, 5), of(3, 4, 5), of(10, 40, 500), of(30, 40, 500), of(5, 4, 5),
                            of(7, 4, 5), of(50, 40, 500), of(70, 40, 500)});
}

TEST(BatchNormLayer, TakesVectorsAndSequences) {
  Normed m;
  const std::vector<double> expected{of(1, 4, 5), of(10, 40, 500), of(7, 4, 5), of(70, 40, 500)};
  const std::vector<float> y =
      m(Tensor::from({4, 2}, std::vector<float>{1, 10, 3, 30, 5, 50, 7, 70}));
  expect_near({y[0], y[1], y[6], y[7]}, expected);
  const std::vector<float> z =
      m(Tensor::from({2, 2, 2}, std::vector<float>{1, 3, 10, 30, 5, 7, 50, 70}));
  expect_near({z[0], z[2], z[5], z[7]}, expected);
  expect_near(m.mean(), {0.9 * 0.4 + 0.4, 0.9 * 4.0 + 4.0});
  for (const Shape& shape : {Shape{2}, Shape{2, 5}, Shape{2, 5, 3}}) {
    EXPECT_EQ(m.norm.output_shape(shape), shape);
  }
}

TEST(BatchNormLayer, FrozenGoesByRunningMomentsAndLeavesThem) {
  Normed m;
  m(images());
  const std::vector<float> mean = m.mean(), variance = m.variance();
  m.norm.set_trainable(false);
  ASSERT_TRUE(m.model.training());
  const Variable x = Variable::leaf(images());
  const Variable y = m.model(x);
  EXPECT_NEAR(y.value().to_vector()[0], of(1, 0.4, 0.9 + 0.1 * 20 / 3), 1e-6);
  EXPECT_EQ(m.mean(), mean);
  EXPECT_EQ(m.variance(), variance);
  backward(sum(y));
  EXPECT_FALSE(m.norm.weight()->has_gradient());
  EXPECT_FALSE(m.norm.bias()->has_gradient());
  // The moments are constants then, so the gradient is the factor alone.
  EXPECT_NEAR(x.gradient().to_vector()[0], 1.0 / std::sqrt(0.9 + 0.1 * 20 / 3 + 1e-5), 1e-6);
  m(Tensor::from({1, 2}, std::vector<float>{1, 10}));  // a batch of one is no trouble
  m.norm.set_trainable(true);
  m(images());
  EXPECT_NE(m.mean(), mean);
}

TEST(BatchNormLayer, FrozenByItsParametersIsFrozen) {
  Normed m;
  m.model.freeze({"norm.*"});
  m(images());
  EXPECT_EQ(m.mean(), std::vector<float>(2, 0.0f));
  // One of them alone does not freeze the moments.
  Normed half;
  half.model.freeze({"norm.weight"});
  half(images());
  expect_near(half.mean(), {0.4, 4.0});
}

TEST(BatchNormLayer, WithoutRunningMomentsAlwaysGoesByTheBatch) {
  Normed m({.channels = 2, .track_running_stats = false});
  EXPECT_TRUE(m.model.buffers().empty());
  const std::vector<float> trained = m(images());
  m.model.eval();
  EXPECT_EQ(m(images()), trained);
  m.model.train();
  m.norm.set_trainable(false);
  EXPECT_EQ(m(images()), trained);
}

TEST(BatchNormLayer, WithoutAffineHasNoParameters) {
  Normed m({.channels = 2, .affine = false});
  EXPECT_EQ(m.norm.weight(), nullptr);
  EXPECT_EQ(m.norm.bias(), nullptr);
  EXPECT_TRUE(m.model.parameters().empty());
  expect_near(m(images()), {of(1, 4, 5), of(3, 4, 5), of(10, 40, 500), of(30, 40, 500), of(5, 4, 5),
                            of(7, 4, 5), of(50, 40, 500), of(70, 40, 500)});
  expect_near(m.mean(), {0.4, 4.0});
  // There is no parameter to freeze, but the layer.
  m.norm.set_trainable(false);
  m(images());
  expect_near(m.mean(), {0.4, 4.0});
}

TEST(BatchNormLayer, RefusesToTrainOnOneValueAChannel) {
  Normed m;
  const std::string words =
      "layer 'norm' (batch_norm): training needs more than one value per channel, found [1, 2]; "
      "use a larger batch, or train.drop_last if it is the last one of an epoch";
  expect_throws<ShapeError>([&] { m(Tensor::from({1, 2}, std::vector<float>{1, 2})); }, words);
  expect_throws<ShapeError>([&] { m(Tensor::zeros({1, 2, 1, 1})); }, "found [1, 2, 1, 1]");
  expect_throws<ShapeError>([&] { m(Tensor::zeros({0, 2, 3, 3})); }, "found [0, 2, 3, 3]");
  // Nothing of it has come into the running moments.
  EXPECT_EQ(m.mean(), std::vector<float>(2, 0.0f));
  EXPECT_EQ(m.variance(), std::vector<float>(2, 1.0f));
  // Two values are enough, of one example too.
  m(Tensor::from({1, 2, 1, 2}, std::vector<float>{1, 3, 10, 30}));
  expect_near(m.mean(), {0.2, 2.0});
  expect_near(m.variance(), {0.9 + 0.1 * 2, 0.9 + 0.1 * 200});
}

TEST(BatchNormLayer, WithoutRunningMomentsOneValueAChannelIsRefusedInEvaluationToo) {
  BatchNorm norm({.channels = 2, .track_running_stats = false});
  norm.eval();
  expect_throws<ShapeError>(
      [&] {
        norm(Tensor::from({1, 2}, std::vector<float>{1, 2}));
      },
      "track_running_stats is false, so a batch is normalized by its own "
      "moments, and needs more than one value per channel, found [1, 2]");
  const std::vector<float> normal =
      norm(Tensor::from({2, 2}, std::vector<float>{1, 10, 3, 30})).value().to_vector();
  EXPECT_LE(test::largest_error(normal, std::vector<double>{-1, -1, 1, 1}), 1e-5);  // eps
}

TEST(BatchNormLayer, ItsStateComesBackToTheBit) {
  Normed m;
  m(images());
  m.norm.weight()->assign(Tensor::from({2}, std::vector<float>{2.0f, -1.0f}));
  const StateDict state = m.model.state_dict();
  for (const char* name : {"norm.weight", "norm.bias", "norm/running_mean", "norm/running_var"}) {
    EXPECT_TRUE(state.contains(name)) << name;
  }
  Normed again;
  again.model.load_state_dict(state);
  EXPECT_EQ(again.mean(), m.mean());
  EXPECT_EQ(again.variance(), m.variance());
  for (Normed* each : {&m, &again}) each->model.eval();
  EXPECT_EQ(again(images()), m(images()));
  for (Normed* each : {&m, &again}) {
    each->model.train();
    (*each)(images());
  }
  EXPECT_EQ(again.mean(), m.mean());
  EXPECT_EQ(again.variance(), m.variance());
  // The state that was taken is a copy.
  Normed third;
  third.model.load_state_dict(state);
  EXPECT_NE(third.mean(), m.mean());
}

TEST(BatchNormLayer, AStateWithoutRunningMomentsIsRefused) {
  Normed untracked({.channels = 2, .track_running_stats = false});
  Normed m;
  expect_throws<CheckpointError>([&] { m.model.load_state_dict(untracked.model.state_dict()); },
                                 "norm.running_mean");
}

// Nobody's statistics, as a damaged file may hold them.
TEST(BatchNormLayer, ANegativeRunningVarianceIsRefusedWhereItIsUsed) {
  Normed m;
  m.model.buffers()[1].second->mutable_data()[1] = -0.5f;
  m(images());  // by the batch
  m.model.buffers()[1].second->mutable_data()[1] = -0.5f;
  m.model.eval();
  expect_throws<StateError>(
      [&] { m(images()); },
      "layer 'norm' (batch_norm): a running_var must be at least 0, found -0.5 of channel 1");
}

TEST(BatchNormLayer, InitializingGivesTheFirstMomentsBack) {
  Normed m;
  m(images());
  m.model.initialize(3);
  EXPECT_EQ(m.mean(), std::vector<float>(2, 0.0f));
  EXPECT_EQ(m.variance(), std::vector<float>(2, 1.0f));
}

TEST(BatchNormLayer, RefusesShapesAndOptions) {
  Normed m;
  expect_throws<ShapeError>(
      [&] {
        m.norm.output_shape({3, 4, 4});
      },
      "layer 'norm' (batch_norm): 2 channels need examples of shape [2], [2, length] or [2, "
      "height, width], found [3, 4, 4]");
  expect_throws<ShapeError>([&] { m.norm.output_shape({}); }, "found []");
  expect_throws<ShapeError>([&] { m(Tensor::zeros({4, 3})); }, "[4, 3]");
  const auto refuses = [](const BatchNorm::Options& options, const std::string& found) {
    expect_throws<ConfigError>([&] { BatchNorm layer(options); },
                               "batch_norm: channels must be at least 1, eps above 0 and momentum "
                               "in [0, 1], found " +
                                   found);
  };
  refuses({}, "0, 1e-05 and 0.1");
  refuses({.channels = 2, .eps = 0.0}, "2, 0 and 0.1");
  refuses({.channels = 2, .eps = NAN}, "2, nan and 0.1");
  refuses({.channels = 2, .momentum = 1.5}, "2, 1e-05 and 1.5");
  refuses({.channels = 2, .momentum = NAN}, "2, 1e-05 and nan");
}

}  // namespace
}  // namespace lacuna::batch_norm_test
