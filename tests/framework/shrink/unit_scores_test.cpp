// Scores of units by hand, the fit of what stays, and which units are dead.
#include "lacuna/framework/shrink/unit_scores.hpp"

#include <cmath>

#include "framework/onnx/onnx_models.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/reduce.h"
#include "throws.h"

namespace lacuna::unit_scores_test {
namespace {

struct TwoLayers {
  // W1 [3, 2], W2 [2, 3].
  explicit TwoLayers(const std::vector<float>& first, const std::vector<float>& second,
                     const std::string& between = "")
      : model(build_model(model_layers(parse_yaml(
                              "[{type: linear, name: a, out_features: 3, bias: false}, " + between +
                                  " {type: linear, name: b, out_features: 2, bias: false}]",
                              "model")),
                          {2})) {
    model->parameter("a.weight")->assign(Tensor::from({3, 2}, first));
    model->parameter("b.weight")->assign(Tensor::from({2, 3}, second));
    model->eval();
  }
  std::vector<double> of_hidden(const std::vector<double>& scores, const ModelUnits& units) const {
    std::vector<double> hidden;
    for (const int32_t unit : units.groups.front().units) {
      hidden.push_back(scores[static_cast<size_t>(unit)]);
    }
    return hidden;
  }
  std::unique_ptr<Sequential> model;
};

class UnitScores : public testing::Test {
 protected:
  UnitScores() { register_builtins(); }
};

TEST_F(UnitScores, OfMagnitudeAreWhatComesInTimesWhatGoesOut) {
  const TwoLayers two({3, 0, 0, 4, 1, 2}, {1, 0, 2, 0, 3, 2});
  const ModelUnits units(*two.model, {2});
  // Squares of rows 9, 16, 5 with mean 10; of columns 1, 9, 8 with mean 6.
  EXPECT_THAT(two.of_hidden(magnitude_scores(units), units),
              testing::ElementsAre(testing::DoubleNear(0.9 * 1 / 6, 1e-6),
                                   testing::DoubleNear(1.6 * 1.5, 1e-6),
                                   testing::DoubleNear(0.5 * 8 / 6, 1e-6)));
}

TEST_F(UnitScores, OfSaliencyAreSquaresOfWhatTheLossChanges) {
  const TwoLayers two({3, 0, 0, 4, 1, 2}, {1, 0, 2, 0, 3, 2}, "relu,");
  const ModelUnits units(*two.model, {2});
  const auto run = [](Module& model, const std::function<void()>& after) {
    for (const float x : {1.0f, -1.0f}) {
      backward(sum(model(Variable(Tensor::from({1, 2}, std::vector<float>{x, 1.0f})))));
      after();
    }
  };
  // Hidden units are (3, 4, 3) and (0, 4, 1); the loss is h1 + 3 h2 + 4 h3.
  EXPECT_THAT(two.of_hidden(saliency_scores(*two.model, units, run), units),
              testing::ElementsAre(9.0, 2 * 144.0, 144.0 + 16.0));
  for (const ParameterPtr& parameter : two.model->parameters()) {
    EXPECT_FALSE(parameter->has_gradient());
  }
}

TEST_F(UnitScores, OfSaliencyNeedFiniteGradients) {
  const TwoLayers two({3, 0, 0, 4, 1, 2}, {1, 0, 2, 0, 3, 2}, "relu,");
  const ModelUnits units(*two.model, {2});
  const auto run = [](Module& model, const std::function<void()>& after) {
    const float large = 3e38f;
    backward(sum(model(Variable(Tensor::from({1, 2}, std::vector<float>{large, large})))));
    after();
  };
  expect_throws<DataError>([&] { saliency_scores(*two.model, units, run); },
                           "the gradients of the loss are not finite on the calibration examples");
}

// Unit 3 is a copy of unit 2, which can do its work.
TEST_F(UnitScores, OfErrorAreWhatOtherUnitsCannotMakeUpFor) {
  TwoLayers two({1, 0, 0, 1, 0, 1}, {1, 2, 4, 3, 1, 1});
  const ModelUnits units(*two.model, {2});
  const auto run = [](Module& model) { model(Variable(random_tensor({64, 2}, "examples"))); };
  const std::vector<double> scores = two.of_hidden(error_scores(*two.model, units, run), units);
  EXPECT_GT(scores[0], 0.1);
  EXPECT_LT(scores[1], 0.03);
  EXPECT_LT(scores[2], 0.1);
  KeptUnits kept(static_cast<size_t>(units.count), 1);
  kept[static_cast<size_t>(units.groups.front().units[2])] = 0;
  fit_without_units(*two.model, units, kept, run);
  const std::vector<float> fitted = two.model->parameter("b.weight")->to_dense().to_vector();
  const std::vector<float> expected = {1, 6, 0, 3, 2, 0};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(fitted[i], expected[i], 0.1) << i;
}

// Nothing comes into unit 1, nothing goes out of unit 3 but to unit 5 of the next layer, of which
// nothing goes out.
TEST_F(UnitScores, FindDeadUnitsOneAfterTheOther) {
  const auto model = build_model(
      model_layers(parse_yaml("[{type: linear, name: a, out_features: 3, bias: false}, relu,\n"
                              " {type: linear, name: b, out_features: 3}, relu,\n"
                              " {type: linear, name: c, out_features: 2}]",
                              "model")),
      {2});
  const auto mask = [&](const std::string& name, const std::vector<uint8_t>& bits) {
    const ParameterPtr parameter = model->parameter(name);
    parameter->set_pattern(
        Pattern::make(csr_layout(), parameter->shape(), BitMask::from_bytes(bits)));
  };
  mask("a.weight", {0, 0, 1, 0, 1, 1});
  mask("b.weight", {1, 1, 0, 1, 0, 1, 1, 1, 0});
  mask("c.weight", {1, 0, 1, 1, 0, 0});
  const ModelUnits units(*model, {2});
  KeptUnits kept = living_units(units);
  const auto of = [&](size_t group) {
    std::vector<int> flags;
    for (const int32_t unit : units.groups[group].units) {
      flags.push_back(kept[static_cast<size_t>(unit)]);
    }
    return flags;
  };
  EXPECT_EQ(of(0), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(of(1), (std::vector<int>{1, 0, 1}));
  EXPECT_EQ(of(2), (std::vector<int>{1, 1}));

  kept = living_units(units, {.layers = {"a"}});  // so unit 3 goes to a unit that stays
  EXPECT_EQ(of(0), (std::vector<int>{0, 1, 1}));
  EXPECT_EQ(of(1), (std::vector<int>{1, 1, 1}));
  EXPECT_THROW(living_units(units, {.layers = {"none"}}), ConfigError);
}

}  // namespace
}  // namespace lacuna::unit_scores_test
