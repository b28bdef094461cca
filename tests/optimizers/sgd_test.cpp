#include "lacuna/optimizers/sgd.h"

#include <gmock/gmock.h>

#include "optimizers/test_parameters.h"
#include "throws.h"

namespace lacuna::sgd_test {
namespace {

// Two steps with gradient 1, then 0, from the value 1.
std::vector<float> two_steps(const SgdOptions& options) {
  const ParameterPtr w = make_parameter("w", {1.0f});
  Sgd optimizer({w}, options);
  std::vector<float> values;
  for (const float gradient : {1.0f, 0.0f}) {
    set_gradient(w, {gradient});
    optimizer.step();
    values.push_back(w->values().item());
  }
  return values;
}

TEST(Sgd, GoesDownTheGradient) {
  EXPECT_THAT(two_steps({.lr = 0.5}), testing::ElementsAre(0.5f, 0.5f));
}

TEST(Sgd, WeightDecayAddsToTheGradient) {
  EXPECT_THAT(two_steps({.lr = 0.5, .weight_decay = 0.5}), testing::ElementsAre(0.25f, 0.1875f));
}

TEST(Sgd, MomentumBeginsWithTheWholeGradientWhateverTheDampening) {
  EXPECT_THAT(two_steps({.lr = 0.5, .momentum = 0.5}), testing::ElementsAre(0.5f, 0.25f));
  EXPECT_THAT(two_steps({.lr = 0.5, .momentum = 0.5, .dampening = 0.75}),
              testing::ElementsAre(0.5f, 0.25f));
}

TEST(Sgd, DampeningWeighsLaterGradients) {
  const ParameterPtr w = make_parameter("w", {0.0f});
  Sgd optimizer({w}, {.lr = 1.0, .momentum = 0.5, .dampening = 0.75});
  set_gradient(w, {1.0f});
  optimizer.step();
  optimizer.step();  // 0.5 · 1 + 0.25 · 1
  EXPECT_EQ(w->values().item(), -1.75f);
}

TEST(Sgd, NesterovLooksAhead) {
  EXPECT_THAT(two_steps({.lr = 0.5, .momentum = 0.5, .nesterov = true}),
              testing::ElementsAre(0.25f, 0.125f));
}

TEST(Sgd, RefusesOptionsThatCannotBe) {
  const auto make = [](const SgdOptions& options) {
    Sgd optimizer({make_parameter("w", {1.0f})}, options);
  };
  expect_throws<ConfigError>(
      [&] { make({.lr = 0.1, .momentum = -0.5}); },
      "optimizer option 'momentum': expected a finite number of at least 0.0, "
      "found -0.5");
  expect_throws<ConfigError>([&] { make({.lr = 0.1, .nesterov = true}); },
                             "'nesterov': needs momentum above 0 and dampening 0");
  expect_throws<ConfigError>(
      [&] { make({.lr = 0.1, .momentum = 0.9, .dampening = 0.1, .nesterov = true}); },
      "'nesterov': needs momentum above 0 and dampening 0");
}

}  // namespace
}  // namespace lacuna::sgd_test
