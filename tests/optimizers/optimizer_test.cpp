#include "lacuna/optimizers/optimizer.h"

#include <gmock/gmock.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/optimizers/adam.h"
#include "lacuna/optimizers/sgd.h"
#include "optimizers/test_parameters.h"
#include "throws.h"

namespace lacuna::optimizer_test {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

std::vector<float> values_of(const ParameterPtr& parameter) {
  return parameter->values().to_vector();
}

Schedule from(std::vector<Config::Entry> entries) {
  return Schedule::from_config(Config::map(std::move(entries)));
}

TEST(OptimizerStep, CallsHooksAroundTheUpdateInTheOrderTheyWereAdded) {
  const ParameterPtr w = make_parameter("w", {1.0f});
  Sgd optimizer({w}, {.lr = 0.5});
  std::vector<std::string> calls;
  const auto record = [&](std::string name) {
    return [&calls, w, name](Optimizer& o) {
      calls.push_back(name + " " + std::to_string(o.steps()) + " " +
                      std::to_string(w->values().item()));
    };
  };
  HookHandle post = optimizer.register_step_post_hook(record("post"));
  HookHandle first = optimizer.register_step_pre_hook(record("pre1"));
  optimizer.register_step_pre_hook(record("pre2"));
  set_gradient(w, {1.0f});
  optimizer.step();
  EXPECT_THAT(calls, ElementsAre("pre1 0 1.000000", "pre2 0 1.000000", "post 1 0.500000"));

  calls.clear();
  first.remove();
  post.remove();
  optimizer.step();
  EXPECT_THAT(calls, ElementsAre("pre2 1 0.500000"));
}

TEST(OptimizerNoDecay, SparesTheKindsThatItNames) {
  const auto parameters = [] {
    std::vector<ParameterPtr> all;
    for (const char* name : {"norm.weight", "norm.bias", "own.bias", "table"}) {
      all.push_back(make_parameter(name, {1.0f}));
    }
    auto matrix = std::make_shared<Parameter>(Shape{1, 1}, Initializer::constant(1.0));
    matrix->set_name("fc.weight");
    all.push_back(matrix);
    all[3]->use = WeightUse::Embedding;
    for (const ParameterPtr& parameter : all) set_gradient(parameter, {0.0f});
    return all;
  };
  const auto after_a_step = [&](const std::vector<std::string>& no_decay) {
    const std::vector<ParameterPtr> all = parameters();
    Sgd optimizer(all, {.lr = 1.0,
                        .weight_decay = 0.5,
                        .no_decay = no_decay,
                        .groups = {{.params = {"own.*"}, .weight_decay = 0.25}}});
    optimizer.step();
    std::vector<float> values;
    for (const ParameterPtr& parameter : all) values.push_back(parameter->values().item());
    return values;
  };
  EXPECT_THAT(after_a_step({}), ElementsAre(0.5f, 0.5f, 0.75f, 0.5f, 0.5f));
  EXPECT_THAT(after_a_step({"bias"}), ElementsAre(0.5f, 1.0f, 0.75f, 0.5f, 0.5f));
  EXPECT_THAT(after_a_step({"norm"}), ElementsAre(1.0f, 0.5f, 0.75f, 0.5f, 0.5f));
  EXPECT_THAT(after_a_step({"embedding", "bias"}), ElementsAre(0.5f, 1.0f, 0.75f, 1.0f, 0.5f));
  expect_throws<ConfigError>([&] { after_a_step({"biases"}); }, "no_decay.0");
}

TEST(OptimizerStep, PassesFrozenParametersOver) {
  const ParameterPtr frozen = make_parameter("frozen", {1.0f}), w = make_parameter("w", {1.0f});
  frozen->trainable = false;
  Adam optimizer({frozen, w}, {.lr = 0.1, .weight_decay = 0.5, .clip_norm = 1.0});
  set_gradient(frozen, {1000.0f});  // from before it was frozen; it does not count for the norm
  set_gradient(w, {1.0f});
  optimizer.step();
  EXPECT_THAT(values_of(frozen), ElementsAre(1.0f));
  EXPECT_TRUE(frozen->slots().empty());
  EXPECT_THAT(frozen->gradient().to_vector(), ElementsAre(1000.0f));
  EXPECT_FLOAT_EQ(w->values().item(), 0.9f);
  EXPECT_EQ(optimizer.state_dict().get<int64_t>("frozen/step"), 0);
  Adam other({frozen, w}, {.lr = 0.1});
  other.load_state_dict(optimizer.state_dict());
  EXPECT_EQ(other.steps(), 1);
}

TEST(OptimizerStep, AGradientSetInAPreStepHookCounts) {
  const ParameterPtr w = make_parameter("w", {1.0f});
  Sgd optimizer({w}, {.lr = 1.0});
  optimizer.register_step_pre_hook([&](Optimizer&) { set_gradient(w, {0.25f}); });
  optimizer.step();
  EXPECT_THAT(values_of(w), ElementsAre(0.75f));
}

// Trains a masked parameter for some steps; whether the optimizer says that zeros stayed zeros,
// which must then be so, or masked weights would come back.
template <class Kind, class Options>
bool keeps_zeros(const Options& options) {
  const Shape shape{3};
  BitMask mask = BitMask::zeros(3);
  mask.set(1);
  const ParameterPtr w = make_parameter("w", {1.0f, 2.0f, 3.0f});
  w->set_pattern(Pattern::masked(shape, mask));
  Kind optimizer({w}, options);
  for (int i = 0; i < 3; ++i) {
    set_gradient(w, {5.0f, 6.0f, 7.0f});
    w->prune();
    optimizer.step();
  }
  const std::vector<float> values = values_of(w);
  EXPECT_NE(values[1], 2.0f);
  if (w->is_pruned()) {
    EXPECT_EQ(values[0], 0.0f);
    EXPECT_EQ(values[2], 0.0f);
  }
  return w->is_pruned();
}

TEST(OptimizerStep, KeepsZerosUnlessEpsIsZeroOrSomethingIsNotFinite) {
  SgdOptions sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1};
  EXPECT_TRUE(keeps_zeros<Sgd>(sgd));
  sgd.clip_norm = 0.5;  // gradients are scaled
  EXPECT_TRUE(keeps_zeros<Sgd>(sgd));
  sgd.lr = 1e300;
  EXPECT_FALSE(keeps_zeros<Sgd>(sgd));
  EXPECT_TRUE(keeps_zeros<Adam>(AdamOptions{.weight_decay = 0.1}));
  EXPECT_TRUE(keeps_zeros<AdamW>(AdamWOptions{.weight_decay = 0.1}));
  EXPECT_FALSE(keeps_zeros<Adam>(AdamOptions{.eps = 0.0}));
  EXPECT_FALSE(keeps_zeros<AdamW>(AdamWOptions{.lr = 1e300}));
}

TEST(OptimizerStep, LeavesParametersWithoutAGradientUntouched) {
  const ParameterPtr a = make_parameter("a", {1.0f}), b = make_parameter("b", {1.0f});
  Sgd optimizer({a, b}, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.5});
  set_gradient(a, {1.0f});
  optimizer.step();
  EXPECT_NE(values_of(a)[0], 1.0f);
  EXPECT_EQ(values_of(b)[0], 1.0f);
  EXPECT_TRUE(b->slots().empty());
  EXPECT_EQ(optimizer.state_dict().get<int64_t>("a/step"), 1);
  EXPECT_EQ(optimizer.state_dict().get<int64_t>("b/step"), 0);
  EXPECT_EQ(optimizer.steps(), 1);
}

TEST(OptimizerStep, TakesParametersWithoutElements) {
  const ParameterPtr empty = make_parameter("empty", {});
  Sgd optimizer({empty}, {.lr = 0.1, .momentum = 0.9, .clip_norm = 1.0});
  set_gradient(empty, {});
  optimizer.step();
  EXPECT_EQ(optimizer.steps(), 1);
}

TEST(OptimizerZeroGrad, DropsGradientsThenCallsItsHook) {
  const ParameterPtr w = make_parameter("w", {1.0f});
  Sgd optimizer({w}, {.lr = 0.5});
  int calls = 0;
  HookHandle hook = optimizer.register_zero_grad_hook([&](Optimizer&) {
    EXPECT_FALSE(w->has_gradient());
    ++calls;
  });
  set_gradient(w, {1.0f});
  optimizer.zero_grad();
  hook.remove();
  optimizer.zero_grad();
  EXPECT_EQ(calls, 1);
  optimizer.step();
  EXPECT_THAT(values_of(w), ElementsAre(1.0f));
}

TEST(OptimizerClipping, ScalesAllGradientsToTheGlobalNorm) {
  const ParameterPtr a = make_parameter("a", {0.0f, 0.0f}), b = make_parameter("b", {0.0f});
  Sgd optimizer({a, b}, {.lr = 1.0, .clip_norm = 1.0});
  set_gradient(a, {2.0f, 1.0f});
  set_gradient(b, {2.0f});
  optimizer.step();  // norm 3
  const float factor = static_cast<float>(1.0 / (3.0 + 1e-6));
  EXPECT_THAT(a->gradient().to_vector(), ElementsAre(FloatEq(2 * factor), FloatEq(factor)));
  EXPECT_THAT(values_of(a), ElementsAre(FloatEq(-2 * factor), FloatEq(-factor)));
  EXPECT_THAT(values_of(b), ElementsAre(FloatEq(-2 * factor)));
}

TEST(OptimizerClipping, LeavesSmallGradientsAndAbsentOnesAlone) {
  const ParameterPtr a = make_parameter("a", {0.0f}), b = make_parameter("b", {0.0f});
  Sgd optimizer({a, b}, {.lr = 1.0, .clip_norm = 1.0});
  set_gradient(a, {0.5f});
  optimizer.step();
  EXPECT_EQ(a->gradient().item(), 0.5f);
  EXPECT_FALSE(b->has_gradient());
}

TEST(OptimizerClipping, ComesAfterThePreStepHooks) {
  const ParameterPtr w = make_parameter("w", {0.0f});
  Sgd optimizer({w}, {.lr = 1.0, .clip_norm = 1.0});
  optimizer.register_step_pre_hook([&](Optimizer&) { set_gradient(w, {100.0f}); });
  optimizer.step();
  EXPECT_NEAR(values_of(w)[0], -1.0f, 1e-6);
}

TEST(OptimizerGroups, TheFirstMatchWinsAndTheRestIsTheDefaultGroup) {
  const ParameterPtr weight = make_parameter("fc1.weight", {1.0f});
  const ParameterPtr bias = make_parameter("fc1.bias", {1.0f});
  const ParameterPtr other = make_parameter("fc2.weight", {1.0f});
  Sgd optimizer({weight, bias, other},
                {.lr = 0.5,
                 .weight_decay = 0.25,
                 .groups = {{.params = {"*.bias"}, .weight_decay = 0.0},
                            {.params = {"fc1.*", "fc1.bias"}, .lr = 0.125}}});
  for (const ParameterPtr& parameter : {weight, bias, other}) set_gradient(parameter, {1.0f});
  optimizer.step();
  EXPECT_EQ(weight->values().item(), 1.0f - 0.125f * 1.25f);
  EXPECT_EQ(bias->values().item(), 0.5f);
  EXPECT_EQ(other->values().item(), 1.0f - 0.5f * 1.25f);
  EXPECT_EQ(optimizer.lr(), 0.5);
}

TEST(OptimizerGroups, HaveTheirOwnScheduleAndTheCommonWarmUp) {
  const ParameterPtr a = make_parameter("a", {0.0f}), b = make_parameter("b", {0.0f});
  Sgd optimizer({a, b},
                {.lr = 1.0,
                 .warmup = 2,
                 .groups = {{.params = {"b"},
                             .lr = from({{"type", "power"}, {"init", 1.0}, {"beta", 0.5}})}}});
  set_gradient(a, {1.0f});
  set_gradient(b, {1.0f});
  optimizer.step();
  optimizer.step();
  EXPECT_EQ(a->values().item(), -1.5f);
  EXPECT_EQ(b->values().item(), -1.0f);
}

TEST(OptimizerLearningRate, ConstantsStayDouble) {
  Sgd optimizer({make_parameter("w", {1.0f})}, {.lr = 0.1});
  EXPECT_EQ(optimizer.lr(), 0.1);
}

TEST(OptimizerLearningRate, FollowsItsScheduleOverTheStepsDone) {
  const ParameterPtr w = make_parameter("w", {0.0f});
  Sgd optimizer({w}, {.lr = from({{"type", "multi_step"},
                                  {"init", 1.0},
                                  {"milestones", Config::list({1, 3})},
                                  {"gamma", 0.5}})});
  set_gradient(w, {1.0f});
  std::vector<double> rates;
  std::vector<float> values;
  for (int i = 0; i < 4; ++i) {
    rates.push_back(optimizer.lr());
    optimizer.step();
    values.push_back(w->values().item());
  }
  EXPECT_THAT(rates, ElementsAre(1.0, 0.5, 0.5, 0.25));
  EXPECT_THAT(values, ElementsAre(-1.0f, -1.5f, -2.0f, -2.25f));
}

TEST(OptimizerLearningRate, AListTakesTheNextValueInEachStep) {
  const auto p = make_parameter("p", {0.0f});
  Sgd sgd({p}, {.lr = Schedule::from_config(parse_yaml("[0.5, 0.25]", "lr"))});
  for (const double rate : {0.5, 0.25, 0.5, 0.25}) {
    EXPECT_DOUBLE_EQ(sgd.lr(), rate);
    set_gradient(p, {1.0f});
    sgd.step();
  }
  EXPECT_FLOAT_EQ(p->values().data()[0], -1.5f);
}

TEST(OptimizerLearningRate, WarmUpRisesLinearlyToTheSchedule) {
  const ParameterPtr w = make_parameter("w", {0.0f});
  Sgd optimizer({w}, {.lr = 0.8, .warmup = 4});
  std::vector<double> rates;
  for (int i = 0; i < 6; ++i) {
    rates.push_back(optimizer.lr());
    optimizer.step();
  }
  EXPECT_THAT(rates, ElementsAre(0.2, 0.4, 0.8 * 0.75, 0.8, 0.8, 0.8));
}

TEST(OptimizerLearningRate, AScheduleBelowZeroIsAnError) {
  const ParameterPtr w = make_parameter("w", {0.0f});
  Sgd optimizer({w}, {.lr = from({{"type", "linear"}, {"init", 0.5}, {"slope", -0.5}})});
  set_gradient(w, {1.0f});
  optimizer.step();
  optimizer.step();
  EXPECT_EQ(w->values().item(), -0.5f);
  expect_throws<ConfigError>([&] { optimizer.step(); },
                             "the learning-rate schedule gives -0.5 at step 2; expected a finite "
                             "number of at least 0");
  EXPECT_EQ(w->values().item(), -0.5f);
  EXPECT_EQ(optimizer.steps(), 2);
}

TEST(OptimizerApply, HandsItselfToTheAlgorithm) {
  struct Algorithm {
    Optimizer* applied = nullptr;
    void apply(Optimizer& optimizer) { applied = &optimizer; }
  } algorithm;
  const ParameterPtr w = make_parameter("w", {0.0f});
  Sgd optimizer({w}, {.lr = 0.1});
  optimizer.apply(algorithm);
  EXPECT_EQ(algorithm.applied, &optimizer);
  EXPECT_THAT(optimizer.parameters(), ElementsAre(w));
}

TEST(OptimizerMasked, UpdatesKeepPrunedPositionsAtZero) {
  const ParameterPtr w = make_parameter("w", {1.0f, 2.0f, 3.0f});
  Sgd optimizer({w}, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
  w->set_pattern(Pattern::masked({3}, BitMask::from_bytes(std::vector<uint8_t>{1, 0, 1})));
  for (int i = 0; i < 3; ++i) {
    set_gradient(w, {1.0f, std::numeric_limits<float>::quiet_NaN(), 1.0f});
    optimizer.step();
  }
  EXPECT_EQ(values_of(w)[1], 0.0f);
  EXPECT_EQ(w->slots().at("momentum_buffer").values.to_vector()[1], 0.0f);
  EXPECT_NE(values_of(w)[0], 1.0f);
}

TEST(OptimizerErrors, OptionsOutOfRangeAreNamed) {
  const ParameterPtr w = make_parameter("fc1.weight", {0.0f});
  const auto make = [&](SgdOptions options) { Sgd optimizer({w}, options); };
  expect_throws<ConfigError>(
      [&] { make({.lr = -0.1}); },
      "optimizer option 'lr': expected a finite number of at least 0.0, found "
      "-0.1");
  expect_throws<ConfigError>([&] { make({.lr = std::numeric_limits<double>::quiet_NaN()}); },
                             "'lr': expected a finite number of at least 0.0, found .nan");
  expect_throws<ConfigError>(
      [&] { make({.lr = 1.0, .weight_decay = -1.0}); },
      "'weight_decay': expected a finite number of at least 0.0, found -1.0");
  expect_throws<ConfigError>([&] { make({.lr = 1.0, .warmup = -1}); },
                             "'warmup': expected a finite number of at least 0.0, found -1.0");
  expect_throws<ConfigError>([&] { make({.lr = 1.0, .clip_norm = 0.0}); },
                             "'clip_norm': expected a number above 0, found 0.0");
  expect_throws<ConfigError>([&] { make({.lr = 1.0, .groups = {{.params = {"*"}, .lr = -1.0}}}); },
                             "'groups.0.lr': expected a finite number of at least 0.0, found -1.0");
  expect_throws<ConfigError>(
      [&] { make({.lr = 1.0, .groups = {{.params = {"*"}, .weight_decay = -1.0}}}); },
      "'groups.0.weight_decay': expected a finite number of at least 0.0, found -1.0");
  expect_throws<ConfigError>([&] { make({.lr = 1.0, .groups = {{}}}); },
                             "'groups.0.params': expected at least one glob");
  expect_throws<ConfigError>(
      [&] { make({.lr = 1.0, .groups = {{.params = {"fc1.weigth"}}}}); },
      "'groups.0.params': 'fc1.weigth' matches no parameter; did you mean 'fc1.weight'?");
}

TEST(OptimizerErrors, ParametersMustExistAndDifferInName) {
  expect_throws<StateError>([] { Sgd optimizer({}, {.lr = 0.1}); },
                            "an optimizer needs at least one parameter");
  expect_throws<StateError>(
      [] {
        Sgd optimizer({make_parameter("w", {1.0f}), make_parameter("w", {1.0f})}, {.lr = 0.1});
      },
      "the optimizer was given two parameters named 'w'");
}

TEST(Optimizer, RefusesNullParametersAndAWarmupWithoutEnd) {
  const ParameterPtr w = make_parameter("w", {1.0f});
  const std::string words = "the optimizer was given a parameter whose pointer is null";
  expect_throws<StateError>([&] { Sgd({w, nullptr}, {.lr = 0.5}); }, words);
  expect_throws<StateError>([] { Adam({nullptr}, {.lr = 0.5}); }, words);
  expect_throws<StateError>([] { AdamW({nullptr}, {.lr = 0.5}); }, words);
  EXPECT_THROW(Sgd({w}, {.lr = 0.5, .warmup = std::numeric_limits<int64_t>::max()}), ConfigError);
}

}  // namespace
}  // namespace lacuna::optimizer_test
