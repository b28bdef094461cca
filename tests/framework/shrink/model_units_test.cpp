// Units of models: what belongs together, what stays, and that a smaller model gives what the whole
// one gives with the weights of the removed units at zero.
#include "lacuna/framework/shrink/model_units.hpp"

#include <algorithm>

#include "framework/shrink/small_models.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/layer_registry.h"
#include "throws.h"

namespace lacuna::model_units_test {
namespace {

using shrink_tests::Cut;
using shrink_tests::small_models;
using shrink_tests::SmallModel;

class SmallerModels : public testing::TestWithParam<SmallModel> {};

TEST_P(SmallerModels, GiveWhatTheWholeOneGivesWithTheirUnitsAtZero) {
  const SmallModel& small = GetParam();
  Cut cut(small);
  ASSERT_GT(cut.removed, 2u);
  const auto smaller = cut.build(small.example);
  int64_t before = 0, after = 0;
  for (const ParameterPtr& parameter : cut.model->parameters()) before += parameter->numel();
  for (const ParameterPtr& parameter : smaller->parameters()) after += parameter->numel();
  EXPECT_LT(after, before);
  cut.mask();
  const Batch batch = shrink_tests::make_examples(small);
  shrink_tests::expect_equal(onnx_tests::outputs_of(*smaller, batch),
                             onnx_tests::outputs_of(*cut.model, batch));
}

TEST_P(SmallerModels, CostWhatIsPredicted) {
  const SmallModel& small = GetParam();
  Cut cut(small);
  const std::vector<ModuleRow> rows = module_rows(*cut.model, small.example);
  const UnitsCost predicted = cost_of(*cut.model, rows, cut.units, cut.kept);
  const auto smaller = cut.build(small.example);
  double parameters = 0.0;
  for (const ParameterPtr& parameter : smaller->parameters()) {
    parameters += static_cast<double>(parameter->pattern()->nnz());
  }
  EXPECT_EQ(predicted.parameters, parameters);
  const Flops flops = count_flops(module_rows(*smaller, small.example), [](const Parameter& p) {
    return static_cast<double>(p.pattern()->nnz());
  });
  EXPECT_DOUBLE_EQ(predicted.flops, flops.forward);
}

INSTANTIATE_TEST_SUITE_P(OfEachDependency, SmallerModels, testing::ValuesIn(small_models()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

ModelUnits units_of(const std::string& yaml, const Shape& example) {
  register_builtins();
  static std::vector<std::unique_ptr<Sequential>> models;  // which units refer to
  models.push_back(build_model(model_layers(parse_yaml(yaml, "model")), example));
  return ModelUnits(*models.back(), example);
}

TEST(ModelUnits, AreOneForEachHeadWithItsQueriesKeysAndValues) {
  const ModelUnits units = units_of(
      "[{type: linear, name: qkv, out_features: 24}, {type: attention, heads: 2, mask: ''},\n"
      " {type: linear, name: out, out_features: 8}]",
      {3, 8});
  ASSERT_EQ(units.groups.size(), 2u);
  EXPECT_EQ(units.groups[0].name(), "qkv");
  EXPECT_EQ(units.groups[0].units.size(), 2u);
  EXPECT_EQ(units.groups[1].why_fixed, "it is an output of the model");
}

TEST(ModelUnits, OfLayersThatAreAddedAreOfOneGroup) {
  const ModelUnits units = units_of(
      "[{type: linear, name: first, out_features: 6}, {type: residual, layers: [{type: linear,\n"
      "  name: inner, out_features: 5}, relu, {type: linear, name: last, out_features: 6}]},\n"
      " {type: linear, name: out, out_features: 2}]",
      {4});
  ASSERT_EQ(units.groups.size(), 3u);
  EXPECT_EQ(units.groups[0].layers, (std::vector<std::string>{"first", "last"}));
  EXPECT_EQ(units.groups[0].units.size(), 6u);
  EXPECT_EQ(units.groups[1].layers, std::vector<std::string>{"inner"});
}

TEST(ModelUnits, SayWhyTheyStay) {
  const auto why = [](const std::string& yaml, const Shape& example) {
    return units_of(yaml, example).groups.front().why_fixed;
  };
  EXPECT_EQ(why("[{type: linear, out_features: 6}, {type: layer_norm, name: ln}, {type: linear, "
                "out_features: 2}]",
                {4}),
            "layer 'ln' (layer_norm) normalizes over all features together");
  EXPECT_EQ(why("[{type: conv2d, out_channels: 4, kernel: 1}, {type: conv2d, name: grouped, "
                "out_channels: 6, kernel: 1, groups: 2}, flatten, {type: linear, out_features: 2}]",
                {3, 4, 4}),
            "layer 'grouped' (conv2d) needs as many channels in each of its groups");
  EXPECT_EQ(why("[{type: tiled_linear, name: tiles, out_features: 6, tile: 4}, {type: linear, "
                "out_features: 2}]",
                {4}),
            "layer 'tiles' (tiled_linear) divides its outputs into tiles of equal sizes");
}

// A layer of a user's own, which says nothing of its units.
class Undeclared final : public Module {
 public:
  Undeclared() {
    register_parameter("weight",
                       std::make_shared<Parameter>(Shape{3, 4}, Initializer::constant(1.0)));
  }
  std::string_view type() const override { return "undeclared"; }
  Shape output_shape(const Shape&) const override { return Shape{3}; }

 protected:
  Variable forward(const Variable& input) override { return input; }
};

TEST(ModelUnits, OfUndeclaredLayersStayForThatReason) {
  static const bool is_added = layer_registry().add(
      "undeclared", "", {.make = [](const Config&, const Shape&) -> std::unique_ptr<Module> {
        return std::make_unique<Undeclared>();
      }});
  ASSERT_TRUE(is_added);
  const ModelUnits units =
      units_of("[{type: undeclared, name: own}, {type: linear, name: out, out_features: 2}]", {4});
  ASSERT_EQ(units.groups.size(), 2u);
  EXPECT_EQ(units.groups[0].name(), "own");
  const std::vector<double> scores(static_cast<size_t>(units.count), 1.0);
  expect_throws<ConfigError>([&] { removal_order(units, {}, scores, {.layers = {"own"}}); },
                             "no unit of layer 'own' can be removed: layer 'own' (undeclared) does "
                             "not declare its units");
}

TEST(RemovalOrder, NamesNoLayersWhereNoneGivesUnits) {
  const ModelUnits units = units_of("[relu]", {4});
  expect_throws<ConfigError>(
      [&] { removal_order(units, {}, std::vector<double>(4), {.layers = {"fc"}}); },
      "'fc' matches no layer: the model has no layer with removable units");
}

TEST(RemovalOrder, RefusesLayersThatAreNotThereOrCannotBeCut) {
  const ModelUnits units = units_of(
      "[{type: linear, name: fc1, out_features: 6}, {type: layer_norm, name: ln}, {type: linear, "
      "name: fc2, out_features: 5}, relu, {type: linear, name: out, out_features: 2}]",
      {4});
  const std::vector<double> scores(static_cast<size_t>(units.count), 1.0);
  const auto order = [&](const std::string& layer) {
    return removal_order(units, {}, scores, {.layers = {layer}});
  };
  EXPECT_EQ(order("fc2").size(), 4u);
  expect_throws<ConfigError>([&] { order("fc3"); }, "'fc3' matches no layer with removable units");
  expect_throws<ConfigError>([&] { order("fc1"); },
                             "no unit of layer 'fc1' can be removed: layer 'ln' (layer_norm) "
                             "normalizes over all features together");
  expect_throws<ConfigError>([&] { order("o*"); }, "no unit of the model can be removed");
  expect_throws<ConfigError>(
      [&] { removal_order(units, {}, scores, {.keep_at_least = 0.9, .layers = {"fc2"}}); },
      "each layer keeps a fraction of 0.9 of its units, rounded up (keep_at_least)");
  const auto no_order = [](const std::string& yaml) {
    const ModelUnits fixed = units_of(yaml, {4});
    removal_order(fixed, {}, std::vector<double>(static_cast<size_t>(fixed.count)), {});
  };
  expect_throws<ConfigError>(
      [&] { no_order("[{type: tiled_linear, name: out, out_features: 6}]"); },
      "layer 'out' (tiled_linear) divides its outputs into tiles of equal sizes");
}

TEST(CountWithin, IsTheFirstThatMeetsTheTarget) {
  const auto cost = [](size_t count) { return 10.0 - static_cast<double>(count); };
  EXPECT_EQ(count_within(8, 10.0, cost), 0u);
  EXPECT_EQ(count_within(8, 5.5, cost), 5u);
  EXPECT_EQ(count_within(8, 2.0, cost), 8u);
  EXPECT_EQ(count_within(8, 1.9, cost), std::nullopt);
}

}  // namespace
}  // namespace lacuna::model_units_test
