#include "lacuna/framework/train/weight_average.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/set.h"
#include "lacuna/sparsity/weights/master_weight.h"
#include "sparsity/test_model.h"
#include "throws.h"

namespace lacuna::weight_average_test {
namespace {

constexpr double kDecay = 0.75;

// A model in training, with the average of its weights.
struct Averaged {
  explicit Averaged(const std::string& algorithm = "", int64_t start = 0)
      : average(t.model, {.decay = kDecay, .start = start}) {
    if (algorithm.empty()) return;
    register_builtins();
    sparsity = configure(parse_yaml(algorithm, "s.yaml"), 0);
    t.apply(*sparsity);
  }
  void step() {
    t.step();
    average.update(t.optimizer->steps());
  }
  const Slot& slot(const char* name = "fc1.weight") {
    return static_cast<const Parameter&>(t.weight(name)).slots().at("ema");
  }

  TestModel t;
  std::unique_ptr<SparsityAlgorithm> sparsity;
  WeightAverage average;
};

std::vector<float> shown(Averaged& run, const char* name = "fc1.weight") {
  const auto scope = run.average.show();
  return whole(run.t.weight(name));
}

std::vector<float> output(Averaged& run) {
  return run.t.model(Variable(run.t.x)).value().to_vector();
}

TEST(WeightAverage, MovesTowardsTheWeightsFromThoseOfTheFirstStep) {
  Averaged run;
  std::vector<double> expected;
  for (int step = 1; step <= 5; ++step) {
    run.step();
    const std::vector<float> weights = whole(run.t.weight());
    if (step == 1) expected.assign(weights.begin(), weights.end());
    for (size_t i = 0; i < weights.size(); ++i) {
      expected[i] = kDecay * expected[i] + (1.0 - kDecay) * weights[i];
    }
  }
  const std::vector<float> found = shown(run);
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-6) << i;
}

TEST(WeightAverage, BeginsAfterTheStepsItIsTold) {
  Averaged run("", 3);
  for (int step = 1; step <= 2; ++step) run.step();
  EXPECT_TRUE(run.average.state_dict().empty());
  EXPECT_EQ(shown(run), whole(run.t.weight()));
  run.step();
  EXPECT_EQ(shown(run), whole(run.t.weight()));
  EXPECT_EQ(run.average.state_dict().values().size(), 4u);
  run.step();
  EXPECT_NE(shown(run), whole(run.t.weight()));
}

TEST(WeightAverage, IsShownInPlaceOfTheWeightsAndLeavesThemAsTheyWere) {
  for (const char* algorithm :
       {"", "{sparsity: 0.5, layout: csr}", "{sparsity: 0.5, layout: masked}",
        "{algorithm: ste, sparsity: 0.5, update: {freq: 1}, layout: csr}",
        "{algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}, layout: nm}"}) {
    SCOPED_TRACE(algorithm);
    Averaged run(algorithm);
    for (int step = 0; step < 4; ++step) run.step();
    const std::vector<float> weights = whole(run.t.weight()), before = output(run);
    std::vector<float> averages, between;
    {
      const auto scope = run.average.show();
      averages = whole(run.t.weight());
      between = output(run);
    }
    EXPECT_NE(averages, weights);
    EXPECT_NE(between, before);
    EXPECT_EQ(whole(run.t.weight()), weights);
    EXPECT_EQ(output(run), before);
    // What is computed from the averages is what a model with these weights computes.
    run.t.model.parameter("fc1.weight")->assign(Tensor::from({16, 12}, averages));
    for (const char* name : {"fc1.bias", "fc2.weight", "fc2.bias"}) {
      const std::vector<float> values = shown(run, name);
      Parameter& parameter = run.t.weight(name);
      parameter.assign(Tensor::from(parameter.shape(), values));
    }
    EXPECT_EQ(output(run), between);
  }
}

// Where it was dropped it is forgotten; where it was grown it starts at zero.
TEST(WeightAverage, FollowsThePattern) {
  for (const char* layout : {"masked", "csr"}) {
    Averaged run(std::string("{algorithm: set, sparsity: 0.6, update: {freq: 1}, layout: ") +
                 layout + "}");
    std::vector<double> expected(192, 0.0);
    std::vector<uint8_t> mask(192, 0);
    int64_t grown = 0;
    for (int step = 1; step <= 6; ++step) {
      run.step();
      const std::vector<float> weights = whole(run.t.weight());
      const std::vector<uint8_t> now = run.t.weight().mask().values;
      for (size_t i = 0; i < 192; ++i) {
        if (step == 1) expected[i] = weights[i];
        if (mask[i] == 0 || now[i] == 0) expected[i] = step == 1 ? expected[i] : 0.0;
        grown += step > 1 && mask[i] == 0 && now[i] != 0 ? 1 : 0;
        if (now[i] != 0) expected[i] += (1.0 - kDecay) * (weights[i] - expected[i]);
      }
      mask = now;
    }
    EXPECT_GT(grown, 20);
    const std::vector<float> found = shown(run);
    for (size_t i = 0; i < 192; ++i) ASSERT_NEAR(found[i], expected[i], 1e-6) << layout << i;
    expect_zero_outside(run.t.weight());
    EXPECT_EQ(run.slot().values.numel(), run.t.weight().pattern()->stored_size());
  }
}

TEST(WeightAverage, OfADenseMasterIsAveragedWhole) {
  Averaged run("{algorithm: ste, sparsity: 0.5, update: {freq: 1}, layout: csr}");
  std::vector<double> expected;
  for (int step = 1; step <= 4; ++step) {
    run.step();
    const std::vector<float> master = master_of(run.t.weight())->to_vector();
    if (step == 1) expected.assign(master.begin(), master.end());
    for (size_t i = 0; i < master.size(); ++i) {
      expected[i] += (1.0 - kDecay) * (master[i] - expected[i]);
    }
  }
  const std::vector<float> found = shown(run);
  const std::vector<uint8_t> mask = run.t.weight().mask().values;
  int64_t kept = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(run.slot().values.data()[i], expected[i], 1e-6);
    EXPECT_NEAR(found[i], mask[i] != 0 ? expected[i] : 0.0, 1e-6);
    kept += mask[i];
  }
  EXPECT_EQ(kept, 96);
}

// A master that begins when there is an average already: outside of the mask it begins as itself.
TEST(WeightAverage, WidensWhenAMasterComesAndNarrowsWhenItGoes) {
  Averaged run(
      "{phases: [{until: 2, algorithm: static, sparsity: 0.5}, "
      "{until: 4, algorithm: ste, sparsity: 0.7, update: {freq: 1}}, "
      "{algorithm: static, sparsity: 0.7}]}");
  for (int step = 1; step <= 6; ++step) {
    run.step();
    const bool has_master = master_of(run.t.weight()) != nullptr;
    EXPECT_EQ(run.slot().requires_dense, has_master) << step;
    const std::vector<float> found = shown(run), weights = whole(run.t.weight());
    double distance = 0.0;
    for (size_t i = 0; i < found.size(); ++i) {
      distance = std::max(distance, std::abs(double{found[i]} - weights[i]));
    }
    EXPECT_LT(distance, 0.1) << step;  // a step is 0.01
  }
}

TEST(WeightAverage, AveragesBuffersBesides) {
  TestModel t;
  Tensor mean = Tensor::full({2}, 1.0f);
  const NamedBuffers buffers{{"bn1.running_mean", &mean}};
  WeightAverage average(t.model, {.decay = kDecay}, buffers);
  average.update(1);
  mean = Tensor::full({2}, 5.0f);
  average.update(2);
  const auto is = [&](float value) { return mean.to_vector() == std::vector<float>(2, value); };
  {
    const auto scope = average.show();
    EXPECT_TRUE(is(2.0f));
  }
  EXPECT_TRUE(is(5.0f));
  const StateDict state = average.state_dict();
  EXPECT_EQ(state.values().size(), 5u);
  WeightAverage restored(t.model, {.decay = kDecay}, buffers);
  restored.load_state_dict(state, 2);
  {
    const auto scope = restored.show();
    EXPECT_TRUE(is(2.0f));
  }
  load_average(state, t.model, buffers);
  EXPECT_TRUE(is(2.0f));
  StateDict bad = state;
  bad.set("bn1.running_mean", Tensor::zeros({3}));
  const std::string message = "'bn1.running_mean' has shape [3], in the model [2]";
  expect_throws<CheckpointError>([&] { restored.load_state_dict(bad, 2); }, message);
  expect_throws<CheckpointError>([&] { load_average(bad, t.model, buffers); }, message);
}

TEST(WeightAverage, PassesFrozenParametersOver) {
  Averaged run;
  run.t.model.freeze({"fc1.weight"});
  for (int step = 0; step < 3; ++step) run.step();
  EXPECT_FALSE(run.average.state_dict().contains("fc1.weight"));
  EXPECT_TRUE(run.average.state_dict().contains("fc2.weight"));
  EXPECT_TRUE(run.t.weight("fc1.weight").slots().empty());
}

TEST(WeightAverage, GoesOnFromItsStateInAnyLayout) {
  for (const char* from : {"masked", "csr"}) {
    for (const char* to : {"masked", "csr"}) {
      const auto algorithm = [](const char* layout) {
        return std::string("{algorithm: static, sparsity: 0.6, layout: ") + layout + "}";
      };
      Averaged first(algorithm(from)), second(algorithm(to));
      for (int step = 0; step < 3; ++step) first.step();
      const StateDict model = first.t.model.state_dict(),
                      algorithm_state = first.sparsity->state_dict();
      second.t.model.load_state_dict(model);
      second.sparsity->load_state_dict(algorithm_state);
      second.t.optimizer->load_state_dict(first.t.optimizer->state_dict());
      second.sparsity->restore_layouts();
      second.average.load_state_dict(first.average.state_dict(), 3);
      EXPECT_EQ(shown(second), shown(first)) << from << to;
      Averaged other(algorithm(to));
      other.t.model.load_state_dict(model);
      load_average(first.average.state_dict(), other.t.model);
      EXPECT_EQ(whole(other.t.weight()), shown(first)) << from << to;
    }
  }
}

TEST(WeightAverage, RefusesAStateThatDoesNotFitAndChangesNothing) {
  Averaged run;
  for (int step = 0; step < 2; ++step) run.step();
  const std::vector<float> before = shown(run);
  const StateDict good = run.average.state_dict();
  StateDict bad;
  for (const auto& [name, value] : good.values()) {
    if (name != "fc1.bias") bad.set(name, value);
  }
  bad.set("fc1.weight", Tensor::zeros({3}));
  bad.set("fc9.weight", Tensor::zeros({3}));
  const auto load = [&] { run.average.load_state_dict(bad, 2); };
  expect_throws<CheckpointError>(load, "the saved average of the weights does not fit: ");
  expect_throws<CheckpointError>(load, "'fc1.bias' is missing");
  expect_throws<CheckpointError>(load, "'fc1.weight' has shape [3], in the model [16, 12]");
  expect_throws<CheckpointError>(load, "'fc9.weight' is not a trained parameter or buffer");
  EXPECT_EQ(shown(run), before);
  expect_throws<CheckpointError>([&] { run.average.load_state_dict(good, 0); },
                                 "'fc1.weight' is unexpected");
  expect_throws<CheckpointError>([&] { load_average(bad, run.t.model); },
                                 "does not fit: 'fc1.weight' has shape [3], in the model [16, 12]");
  StateDict other = good;
  other.set("fc9.weight", Tensor::zeros({3}));
  expect_throws<CheckpointError>(
      [&] { load_average(other, run.t.model); },
      "does not fit: 'fc9.weight' is not a parameter or buffer of the model");
  expect_throws<ConfigError>([&] { WeightAverage(run.t.model, {.decay = 1.0}); },
                             "the decay of an average of weights must be in [0, 1), found 1");
}

}  // namespace
}  // namespace lacuna::weight_average_test
