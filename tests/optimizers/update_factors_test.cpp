// Factors of single parameters: the same as an optimizer with these options.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lacuna/optimizers/adam.h"
#include "lacuna/optimizers/sgd.h"
#include "optimizers/test_parameters.h"
#include "throws.h"

namespace lacuna::update_factors_test {
namespace {

template <class OptimizerType, class Options>
void expect_as_with_options(const Options& options, const Options& multiplied) {
  const ParameterPtr a = make_parameter("w", {1.0f, -2.0f}), b = make_parameter("w", {1.0f, -2.0f});
  OptimizerType with_factors({a}, options), plain({b}, multiplied);
  with_factors.set_factors(
      [](const Parameter&) { return UpdateFactors{.lr = 4.0, .eps = 8.0, .weight_decay = 0.5}; });
  for (int i = 0; i < 3; ++i) {
    set_gradient(a, {0.5f, -0.25f});
    set_gradient(b, {0.5f, -0.25f});
    with_factors.step();
    plain.step();
    ASSERT_EQ(a->values().to_vector(), b->values().to_vector()) << i;
  }
}

TEST(UpdateFactors, AreThoseOfTheOptions) {
  expect_as_with_options<Adam>(AdamOptions{.lr = 0.125, .eps = 0.25, .weight_decay = 0.5},
                               AdamOptions{.lr = 0.5, .eps = 2.0, .weight_decay = 0.25});
  expect_as_with_options<AdamW>(AdamWOptions{.lr = 0.125, .eps = 0.25, .weight_decay = 0.5},
                                AdamWOptions{.lr = 0.5, .eps = 2.0, .weight_decay = 0.25});
  expect_as_with_options<Sgd>(SgdOptions{.lr = 0.125, .momentum = 0.5, .weight_decay = 0.5},
                              SgdOptions{.lr = 0.5, .momentum = 0.5, .weight_decay = 0.25});
}

TEST(UpdateFactors, LeaveGroupsTheirOwnRates) {
  const ParameterPtr w = make_parameter("w", {1.0f}), v = make_parameter("v", {1.0f}),
                     u = make_parameter("u", {1.0f});
  Sgd optimizer({w, v, u}, {.lr = 0.5,
                            .weight_decay = 0.5,
                            .groups = {{.params = {"v"}, .lr = 0.25},
                                       {.params = {"u"}, .weight_decay = 0.25}}});
  optimizer.set_factors(
      [](const Parameter&) { return UpdateFactors{.lr = 2.0, .eps = 3.0, .weight_decay = 4.0}; });
  EXPECT_EQ(optimizer.factors(*w), (UpdateFactors{.lr = 2.0, .eps = 3.0, .weight_decay = 4.0}));
  EXPECT_EQ(optimizer.factors(*v), (UpdateFactors{.lr = 1.0, .eps = 3.0, .weight_decay = 1.0}));
  EXPECT_EQ(optimizer.factors(*u), (UpdateFactors{.lr = 2.0, .eps = 3.0, .weight_decay = 1.0}));
  const ParameterPtr other = make_parameter("other", {1.0f});
  expect_throws<StateError>([&] { optimizer.factors(*other); },
                            "does not train the parameter 'other'");
}

}  // namespace
}  // namespace lacuna::update_factors_test
