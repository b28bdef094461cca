#include "lacuna/layers/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/sequential.h"
#include "throws.h"

namespace lacuna::dropout_test {
namespace {

Tensor ones() { return Tensor::full({10, 40}, 1.0f); }

std::vector<float> run(Module& module) { return module(ones()).value().to_vector(); }

TEST(DropoutLayer, DropsInTrainingAndIsTheIdentityInEvaluation) {
  Dropout layer({.p = 0.5});
  const auto y = run(layer);
  EXPECT_GT(std::ranges::count(y, 0.0f), 100);
  EXPECT_GT(std::ranges::count(y, 2.0f), 100);
  layer.eval();
  const Variable x = ones();
  EXPECT_TRUE(layer(x).value().shares_storage_with(x.value()));
  Dropout none({.p = 0.0});
  EXPECT_EQ(run(none), std::vector<float>(400, 1.0f));
}

TEST(DropoutLayer, DependsOnSeedPathAndCall) {
  Sequential model;
  auto& one = model.add<Dropout>("one");
  auto& two = model.add<Dropout>("two");
  model.initialize(1);
  const auto first = run(one), second = run(one);
  EXPECT_NE(first, second);
  EXPECT_NE(first, run(two));
  model.initialize(1);
  EXPECT_EQ(run(one), first);
  model.initialize(2);
  EXPECT_NE(run(one), first);
}

TEST(DropoutLayer, ItsCounterIsSavedAndRestored) {
  Sequential saved, loaded;
  auto& from = saved.add<Dropout>("drop");
  auto& to = loaded.add<Dropout>("drop");
  saved.initialize(1);
  loaded.initialize(1);
  run(from);
  run(from);
  EXPECT_EQ(saved.state_dict().get<int64_t>("drop/calls"), 2);
  loaded.load_state_dict(saved.state_dict());
  EXPECT_EQ(run(to), run(from));
}

TEST(DropoutLayer, EvaluationDoesNotMoveTheCounter) {
  Sequential model;
  auto& drop = model.add<Dropout>("drop");
  model.eval();
  run(drop);
  EXPECT_EQ(model.state_dict().get<int64_t>("drop/calls"), 0);
}

TEST(DropoutLayer, AProbabilityOutOfRangeIsAnError) {
  expect_throws<ConfigError>([] { Dropout({.p = 1.0}); },
                             "dropout: p must be in [0, 1), found 1.000000");
  EXPECT_THROW(Dropout({.p = -0.5}), ConfigError);
}

}  // namespace
}  // namespace lacuna::dropout_test
