#include "lacuna/framework/train/loop/profiler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/layer_span.hpp"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/loop/profile_report.hpp"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/linear.h"
#include "lacuna/optimizers/sgd.h"

namespace lacuna::profiler_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

double seconds_of(const Profile::Layer& layer, Work kind) {
  return layer.seconds[static_cast<size_t>(kind)];
}

double all_seconds(const Profile& profile) {
  const SecondsByKind total = profile.total();
  double sum = 0.0;
  for (const double seconds : total) sum += seconds;
  return sum;
}

/// Two linear layers with a ReLU between them, trained for some steps.
class ProfilerTest : public testing::Test {
 protected:
  ProfilerTest() {
    model_.add("first",
               std::make_unique<Linear>(Linear::Options{.in_features = 6, .out_features = 5}));
    model_.add("relu", std::make_unique<ReLU>());
    model_.add("last",
               std::make_unique<Linear>(Linear::Options{.in_features = 5, .out_features = 4}));
    model_.initialize(1);
  }

  void train_step(Sgd& optimizer) {
    const ProfileSpan step(Work::Step);
    Variable loss;
    {
      const ProfileSpan forward(Work::Forward);
      const Variable output = model_(Variable(Tensor::full(Shape{3, 6}, 0.5f)));
      const LayerSpan layer("(loss)");
      loss = sum(output);
    }
    {
      const ProfileSpan span(Work::Backward);
      backward(loss);
    }
    const ProfileSpan span(Work::Optimizer);
    optimizer.step();
    optimizer.zero_grad();
  }

  Profile profile_of(int steps) {
    Sgd optimizer(model_.parameters(), {.lr = 0.01});
    Profiler profiler(model_);
    for (int i = 0; i < steps; ++i) train_step(optimizer);
    return profiler.finish();
  }

  Sequential model_;
};

TEST_F(ProfilerTest, CountsEachMomentOnce) {
  const Profile profile = profile_of(7);
  EXPECT_EQ(profile.steps, 7);
  EXPECT_NEAR(all_seconds(profile), profile.seconds, 1e-9);
}

TEST_F(ProfilerTest, FindsTheLayersOfEveryKind) {
  const Profile profile = profile_of(3);
  std::vector<std::string> paths;
  for (const Profile::Layer& layer : profile.layers) paths.push_back(layer.path);
  ASSERT_THAT(paths, ElementsAre("", "first", "relu", "last", "(loss)"));
  EXPECT_EQ(profile.layers[1].type, "linear");
  for (const size_t i : {1, 3}) {
    EXPECT_GT(seconds_of(profile.layers[i], Work::Forward), 0.0) << i;
    EXPECT_GT(seconds_of(profile.layers[i], Work::Backward), 0.0) << i;
    EXPECT_GT(seconds_of(profile.layers[i], Work::Optimizer), 0.0) << i;
  }
  EXPECT_EQ(seconds_of(profile.layers[2], Work::Optimizer), 0.0);  // a ReLU has no parameters
  EXPECT_GT(seconds_of(profile.layers[4], Work::Forward), 0.0);
  EXPECT_GT(seconds_of(profile.layers[4], Work::Backward), 0.0);
}

TEST_F(ProfilerTest, GivesOperationsOfBackwardToTheirLayers) {
  const Profile profile = profile_of(2);
  std::vector<std::string> backward;
  for (const Profile::Event& event : profile.events) {
    const std::string& name = profile.names[static_cast<size_t>(event.name)];
    if (event.kind != Work::Backward || event.layer < 0) continue;
    backward.push_back(profile.layers[static_cast<size_t>(event.layer)].path + ": " + name);
  }
  ASSERT_EQ(backward.size() % 2, 0U);
  const std::vector<std::string> step(backward.begin(),
                                      backward.begin() + static_cast<long>(backward.size() / 2));
  EXPECT_THAT(step.front(), StartsWith("(loss): "));
  EXPECT_THAT(step, Contains("last: linear"));
  EXPECT_EQ(step.back(), "first: linear");
  EXPECT_THAT(std::vector(backward.end() - static_cast<long>(step.size()), backward.end()),
              testing::ElementsAreArray(step));
}

TEST_F(ProfilerTest, TellsNobodyOnceItIsGone) {
  {
    const Profiler profiler(model_);
    EXPECT_EQ(profile_sink(), &profiler);
  }
  EXPECT_EQ(profile_sink(), nullptr);
}

TEST_F(ProfilerTest, TableHasALineForEachLayerAndASum) {
  Profile profile = profile_of(1);
  for (Profile::Layer& layer : profile.layers) layer.seconds = {};
  profile.outside = {};
  profile.steps = 4;
  profile.seconds = 0.02;
  profile.layers[1].seconds[static_cast<size_t>(Work::Forward)] = 0.004;
  profile.layers[3].seconds[static_cast<size_t>(Work::Backward)] = 0.008;
  profile.outside[static_cast<size_t>(Work::Data)] = 0.006;
  profile.outside[static_cast<size_t>(Work::Metrics)] = 0.00002;
  profile.outside[static_cast<size_t>(Work::Other)] = 0.00198;
  const std::vector<std::string> table = profile_table(profile, 10);
  ASSERT_EQ(table.size(), 6U);
  EXPECT_THAT(table[0], HasSubstr("4 steps in 0.02 s, 5 ms each"));
  EXPECT_THAT(table[1], AllOf(StartsWith("ms per step"), HasSubstr("checkpoints")));
  EXPECT_THAT(table[1], testing::Not(HasSubstr("metrics")));  // too short for a column
  EXPECT_THAT(table[2], AllOf(StartsWith("first  linear"), HasSubstr(" 1.000 ")));
  EXPECT_THAT(table[3], AllOf(StartsWith("last  linear"), HasSubstr(" 2.000 ")));
  EXPECT_THAT(table[4], AllOf(StartsWith("(outside of layers)"), HasSubstr(" 0.500 ")));
  EXPECT_THAT(table[5], AllOf(StartsWith("all"), HasSubstr(" 5.000  100.0")));

  const std::vector<std::string> shorter = profile_table(profile, 1);
  EXPECT_THAT(shorter[2], StartsWith("last  linear"));
  EXPECT_THAT(shorter[3], AllOf(StartsWith("(1 more layers)"), HasSubstr(" 1.000 ")));
}

TEST_F(ProfilerTest, JsonHasMillisecondsPerStep) {
  Profile profile = profile_of(1);
  profile.steps = 4;
  profile.layers[1].seconds = {};
  profile.layers[1].seconds[static_cast<size_t>(Work::Masks)] = 0.004;
  const Config json = to_config(profile);
  EXPECT_EQ(json.at("steps").as<int64_t>(), 4);
  const Config layer = json.at("layers").items()[1];
  EXPECT_EQ(layer.at("path").text(), "first");
  EXPECT_DOUBLE_EQ(layer.at("masks").as<double>(), 1.0);
  EXPECT_DOUBLE_EQ(layer.at("all").as<double>(), 1.0);
}

}  // namespace
}  // namespace lacuna::profiler_test
