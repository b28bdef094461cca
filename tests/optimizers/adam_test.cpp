// Adam and AdamW; their numbers over several steps are in the golden tests.
#include "lacuna/optimizers/adam.h"

#include <gmock/gmock.h>

#include "optimizers/test_parameters.h"
#include "throws.h"

namespace lacuna::adam_test {
namespace {

TEST(Adam, TheFirstStepIsTheLearningRateWhateverTheGradient) {
  for (const float gradient : {1e-3f, 1.0f, -1e3f}) {
    const ParameterPtr w = make_parameter("w", {0.0f});
    Adam optimizer({w}, {.lr = 0.5, .eps = 0.0});
    set_gradient(w, {gradient});
    optimizer.step();
    EXPECT_NEAR(w->values().item(), gradient > 0 ? -0.5 : 0.5, 1e-6);
  }
}

TEST(Adam, BiasIsCorrectedByEachParametersOwnCount) {
  const ParameterPtr early = make_parameter("early", {0.0f}), late = make_parameter("late", {0.0f});
  Adam optimizer({early, late}, {.lr = 0.5, .eps = 0.0});
  set_gradient(early, {1.0f});
  for (int i = 0; i < 3; ++i) optimizer.step();
  set_gradient(late, {1.0f});
  optimizer.step();
  EXPECT_NEAR(late->values().item(), -0.5, 1e-6);
}

TEST(Adam, WeightDecayIsPartOfTheGradientAndAdamWsIsNot) {
  const ParameterPtr a = make_parameter("a", {1.0f}), w = make_parameter("w", {1.0f});
  Adam adam({a}, {.lr = 0.25, .eps = 0.0, .weight_decay = 0.5});
  AdamW adamw({w}, {.lr = 0.25, .weight_decay = 0.5});
  set_gradient(a, {0.0f});
  set_gradient(w, {0.0f});
  adam.step();
  adamw.step();
  EXPECT_NEAR(a->values().item(), 0.75, 1e-6);
  EXPECT_EQ(w->values().item(), 0.875f);
}

TEST(Adam, DefaultsAreThoseOfPyTorch) {
  EXPECT_EQ(AdamOptions().weight_decay, 0.0);
  EXPECT_EQ(AdamWOptions().weight_decay, 1e-2);
  EXPECT_EQ(Adam({make_parameter("w", {1.0f})}).lr(), 1e-3);
  EXPECT_EQ(AdamW({make_parameter("w", {1.0f})}).lr(), 1e-3);
}

TEST(Adam, RefusesOptionsThatCannotBe) {
  const std::vector<ParameterPtr> w{make_parameter("w", {1.0f})};
  expect_throws<ConfigError>(
      [&] {
        Adam(w, {.betas = {0.9, 1.0}});
      },
      "optimizer option 'betas': expected a number from 0 to below 1, "
      "found 1.0");
  expect_throws<ConfigError>(
      [&] {
        AdamW(w, {.betas = {-0.1, 0.9}});
      },
      "'betas': expected a number from 0 to below 1, found -0.1");
  expect_throws<ConfigError>([&] { Adam(w, {.eps = -1.0}); },
                             "'eps': expected a finite number of at least 0.0, found -1.0");
  expect_throws<ConfigError>(
      [&] { AdamW(w, {.weight_decay = -1.0}); },
      "'weight_decay': expected a finite number of at least 0.0, found -1.0");
}

}  // namespace
}  // namespace lacuna::adam_test
