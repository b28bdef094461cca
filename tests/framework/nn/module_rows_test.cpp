#include "lacuna/framework/nn/module_rows.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/own_products.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/layers/activations.h"
#include "lacuna/layers/flatten.h"
#include "lacuna/layers/linear.h"
#include "lacuna/layers/parallel.h"
#include "lacuna/layers/residual.h"

namespace lacuna::module_rows_test {
namespace {

// Holds a layer without saying what it gives it.
class Secretive final : public Module {
 public:
  struct Options {};
  explicit Secretive(const Options& = {}) {
    register_module("fc", std::make_unique<Linear>(Linear::Options{3, 3}));
  }
  std::string_view type() const override { return "secretive"; }

 protected:
  Variable forward(const Variable& input) override { return (*children()[0].second)(input); }
};

// "path: input → output, uses".
std::vector<std::string> lines(const Module& model, const Shape& example) {
  std::vector<std::string> all;
  const auto text = [](const std::optional<Shape>& shape) {
    return shape ? shape->to_string() : std::string("?");
  };
  for (const ModuleRow& row : module_rows(model, example)) {
    all.push_back(row.module->path() + ": " + text(row.input) + " → " + text(row.output) + ", " +
                  std::to_string(static_cast<int64_t>(row.uses_per_weight)));
    EXPECT_EQ(row.weight != nullptr, row.uses_per_weight > 0);
  }
  return all;
}

TEST(ModuleRows, FollowTheShapesThroughGroups) {
  Sequential model;
  auto& block = model.add<Residual>("block");
  block.add<Linear>("fc1", {.in_features = 6, .out_features = 5});
  block.add_shortcut<Linear>("down", {.in_features = 6, .out_features = 4});
  block.add<Linear>("fc2", {.in_features = 5, .out_features = 4});
  auto& heads = model.add<Parallel>("heads");
  heads.add<Linear>("q", {.in_features = 4, .out_features = 2});
  heads.add<Sequential>("side").add<Linear>("k", {.in_features = 4, .out_features = 3});
  model.add<Flatten>("flat");
  EXPECT_EQ(lines(model, {7, 6}),
            (std::vector<std::string>{": [7, 6] → [35], 0", "block: [7, 6] → [7, 4], 0",
                                      "fc1: [7, 6] → [7, 5], 7", "down: [7, 6] → [7, 4], 7",
                                      "fc2: [7, 5] → [7, 4], 7", "heads: [7, 4] → [7, 5], 0",
                                      "q: [7, 4] → [7, 2], 7", "side: [7, 4] → [7, 3], 0",
                                      "side.k: [7, 4] → [7, 3], 7", "flat: [7, 5] → [35], 0"}));
  EXPECT_THROW(module_rows(model, Shape{7, 5}), ShapeError);
}

TEST(ModuleRows, KnowNoShapesBelowAModuleThatDoesNotSay) {
  Sequential model;
  model.add<Secretive>("own");
  model.add<ReLU>("relu");
  EXPECT_EQ(lines(model, {3}),
            (std::vector<std::string>{": [3] → [3], 0", "own: [3] → [3], 0", "own.fc: ? → ?, 0",
                                      "relu: [3] → [3], 0"}));
}

TEST(Flops, CountTheUsesOfWeights) {
  Sequential model;
  model.add<Linear>("fc1", {.in_features = 6, .out_features = 5});
  model.add<ReLU>("relu");
  model.add<Linear>("fc2", {.in_features = 5, .out_features = 4});
  const std::vector<ModuleRow> rows = module_rows(model, {3, 6});
  const std::vector<Flops> by_module =
      flops_of_modules(rows, [](const Parameter& p) { return p.numel(); });
  ASSERT_EQ(by_module.size(), 4u);
  EXPECT_EQ(by_module[1], (Flops{.forward = 2 * 3 * 30, .training = 2 * 2 * 3 * 30}));
  EXPECT_EQ(by_module[2], Flops{});
  // fc1: forward and its weight's gradient; fc2: its input's, too.
  EXPECT_EQ(count_flops(rows, [](const Parameter& p) { return p.numel(); }),
            (Flops{.forward = 6 * 30 + 6 * 20, .training = 2 * 6 * 30 + 3 * 6 * 20}));
  EXPECT_EQ(count_flops(rows, [](const Parameter&) { return 10; }),
            (Flops{.forward = 120, .training = 300}));
  EXPECT_EQ(count_flops({}, [](const Parameter&) { return 10; }), Flops{});
}

// Products of tokens with each other, as attention's.
class Pairs final : public Module, public OwnProducts {
 public:
  struct Options {};
  explicit Pairs(const Options& = {}) {}
  std::string_view type() const override { return "pairs"; }
  int64_t product_flops(const Shape& input) const override { return input[0] * input[0]; }

 protected:
  Variable forward(const Variable& input) override { return input; }
};

// Not those of the mean length, which a product of tokens with each other does not have.
TEST(Flops, OfExamplesOfSeveralLengthsAreTheMeanOverThem) {
  Sequential model;
  model.add<Linear>("fc1", {.in_features = 6, .out_features = 5});
  model.add<Pairs>("pairs");
  const std::vector<int32_t> lengths{2, 9, 2, 3};
  const std::vector<ModuleRow> rows = module_rows(model, {9, 6}, lengths);
  EXPECT_EQ(rows[1].output, (Shape{9, 5}));  // of the longest
  const auto all = [](const Parameter& p) { return p.numel(); };
  Flops mean;
  for (const int32_t length : lengths) mean += count_flops(module_rows(model, {length, 6}), all);
  mean.forward /= 4.0;
  mean.training /= 4.0;
  EXPECT_EQ(count_flops(rows, all), mean);
  EXPECT_EQ(mean.forward, (16 * 60 + 4 + 81 + 4 + 9) / 4.0);
  EXPECT_EQ(uses_of_weights(rows), (std::map<std::string, double>{{"fc1.weight", 4.0}}));
  const std::vector<int32_t> same{9, 9, 9};
  EXPECT_EQ(count_flops(module_rows(model, {9, 6}, same), all),
            count_flops(module_rows(model, {9, 6}), all));
}

TEST(Flops, OfTrainingLeaveOutTheGradientsOfWhatIsFrozen) {
  Sequential model;
  model.add<Linear>("fc1", {.in_features = 6, .out_features = 5});
  model.add<Linear>("fc2", {.in_features = 5, .out_features = 4});
  model.add<Linear>("fc3", {.in_features = 4, .out_features = 3});
  const std::vector<ModuleRow> rows = module_rows(model, {6});
  const auto training = [&](const std::vector<std::string>& frozen) {
    model.set_trainable(true);
    model.freeze(frozen);
    const Flops flops = count_flops(rows, [](const Parameter& p) { return p.numel(); });
    EXPECT_EQ(flops.forward, 60 + 40 + 24);
    return flops.training;
  };
  EXPECT_EQ(training({}), 2 * 60 + 3 * 40 + 3 * 24);
  // The second's input gradient is still wanted, by the first; its weight's is not.
  EXPECT_EQ(training({"fc2.*"}), 2 * 60 + 2 * 40 + 3 * 24);
  // A backbone: nothing below the head has a gradient.
  EXPECT_EQ(training({"fc1.*", "fc2.*"}), 60 + 40 + 2 * 24);
  // A bias alone is enough for what comes after it.
  EXPECT_EQ(training({"fc1.weight", "fc2.*"}), 60 + 2 * 40 + 3 * 24);
  EXPECT_EQ(training({"*"}), 60 + 40 + 24);
}

}  // namespace
}  // namespace lacuna::module_rows_test
