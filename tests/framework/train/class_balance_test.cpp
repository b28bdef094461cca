// Weights that follow the numbers of examples, held against numbers computed by hand.
#include "lacuna/framework/train/class_balance.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/loss_function.h"
#include "throws.h"

namespace lacuna::class_balance_test {
namespace {

using testing::ElementsAre;

// Labels 0 and 2 of three classes: 3 and 1 of 4 examples; none of class 1.
ArrayDataset classes() {
  return ArrayDataset({.example_shape = {1},
                       .inputs = std::vector<float>{1, 2, 3, 4},
                       .labels = {0, 2, 0, 0},
                       .num_classes = 3});
}

ArrayDataset two_classes() {
  return ArrayDataset({.example_shape = {1},
                       .inputs = std::vector<float>{1, 2, 3, 4, 5},
                       .labels = {0, 0, 1, 0, 0},
                       .num_classes = 2});
}

// Three decisions: 2, 1 and 2 + last of 4 targets are 1.
ArrayDataset decisions(float last = 1) {
  return ArrayDataset({.example_shape = {1},
                       .inputs = std::vector<float>{1, 2, 3, 4},
                       .targets = {1, 0, 1, 0, 1, 1, 1, 0, last, 0, 0, 0},
                       .num_outputs = 3});
}

double log1p_exp(double x) { return std::log1p(std::exp(x)); }

TEST(BalancedClassWeights, AreTheNumberOfExamplesOverClassesAndTheirOwn) {
  EXPECT_THAT(balanced_class_weights(std::vector<int64_t>{900, 90, 10}),
              ElementsAre(1000.0 / 2700.0, 1000.0 / 270.0, 1000.0 / 30.0));
  EXPECT_THAT(balanced_class_weights(std::vector<int64_t>{3, 0, 1}),
              ElementsAre(4.0 / 6.0, 1.0, 4.0 / 2.0));
  EXPECT_THAT(balanced_class_weights(std::vector<int64_t>{5, 5}), ElementsAre(1.0, 1.0));
}

TEST(ClassWeights, BalancedAreMeasuredAndWrittenAsAList) {
  const Config config = parse_yaml("loss: {class_weights: balanced}", "c.yaml");
  const ArrayDataset data = classes();
  const LossFunction loss = LossFunction::from_config(config, data);
  EXPECT_THAT(config.at("loss").required<std::vector<double>>("class_weights"),
              ElementsAre(4.0 / 6.0, 1.0, 2.0));
  // Σ w · loss / Σ w, with logits (1, 0, 0) for all: w = 2/3 (three times) and 2.
  const std::vector<int64_t> all{0, 1, 2, 3};
  const Batch batch = data.gather(all);
  const Tensor logits =
      Tensor::from(Shape{4, 3}, std::vector<float>{1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0});
  const double of_0 = std::log(std::exp(1.0) + 2.0) - 1.0, of_2 = of_0 + 1.0;
  EXPECT_NEAR(loss(logits, batch).value().item(), (3 * 2.0 / 3.0 * of_0 + 2.0 * of_2) / 4.0, 1e-6);
  EXPECT_NEAR(loss.weight_of(batch), 4.0, 1e-6);
  // Read again, as a run that goes on does.
  const LossFunction again = LossFunction::from_config(config.clone(), data);
  EXPECT_EQ(again(logits, batch).value().item(), loss(logits, batch).value().item());
}

TEST(ClassWeights, BalancedLeaveOutIgnoredExamples) {
  const Config config =
      parse_yaml("loss: {type: cross_entropy, class_weights: balanced, ignore_index: 2}", "c.yaml");
  LossFunction::from_config(config, classes());
  EXPECT_THAT(config.at("loss").required<std::vector<double>>("class_weights"),
              ElementsAre(1.0, 1.0, 1.0));
}

TEST(ClassWeights, SayWhatIsWrong) {
  const auto refused = [](const std::string& weights, const std::string& message) {
    expect_throws<ConfigError>(
        [&] {
          LossFunction::from_config(
              parse_yaml("loss: {type: cross_entropy, class_weights: " + weights + "}", "c.yaml"),
              classes());
        },
        message);
  };
  refused("even",
          "c.yaml:1:44: loss.class_weights: expected balanced, or a list of one number for "
          "each class, found 'even'");
  refused("2", "expected balanced, or a list of one number for each class, found '2'");
  refused("[1, 2]", "loss.class_weights: expected 3 numbers, one for each class");
}

TEST(PosWeight, MultipliesTheLossOfTargetsThatAreOne) {
  const ArrayDataset data = decisions();
  const std::vector<int64_t> two{0, 1};  // targets 1 0 1 and 0 1 1
  const Batch batch = data.gather(two);
  const Tensor logits = Tensor::from(Shape{2, 3}, std::vector<float>{2, -1, 0, 1, 0.5f, -3});
  const auto loss = [&](const std::string& weight) {
    const Config config =
        parse_yaml("loss: {type: binary_cross_entropy, pos_weight: " + weight + "}", "c.yaml");
    return LossFunction::from_config(config, data)(logits, batch).value().item();
  };
  // −log σ(x) = log(1 + e^−x), −log(1 − σ(x)) = log(1 + e^x).
  const auto expected = [](double a, double b, double c) {
    return (a * log1p_exp(-2) + log1p_exp(-1) + c * log1p_exp(0) + log1p_exp(1) +
            b * log1p_exp(-0.5) + c * log1p_exp(3)) /
           6.0;
  };
  EXPECT_NEAR(loss("4"), expected(4, 4, 4), 1e-6);
  EXPECT_NEAR(loss("[2, 0.5, 10]"), expected(2, 0.5, 10), 1e-6);
  EXPECT_NEAR(loss("1"), expected(1, 1, 1), 1e-6);
  // (n − p) / p: 2 / 2, 3 / 1 and 1 / 3.
  EXPECT_NEAR(loss("balanced"), expected(1, 3, 1.0 / 3.0), 1e-6);
}

TEST(PosWeight, BalancedIsMeasuredAndWrittenAsAList) {
  const auto weights = [](const Dataset& data) {
    const Config config =
        parse_yaml("loss: {type: binary_cross_entropy, pos_weight: balanced}", "c.yaml");
    LossFunction::from_config(config, data);
    return config.at("loss").required<std::vector<double>>("pos_weight");
  };
  EXPECT_THAT(weights(decisions()), ElementsAre(1.0, 3.0, 1.0 / 3.0));
  EXPECT_THAT(weights(two_classes()), ElementsAre(4.0));
  EXPECT_THAT(weights(decisions(0.25f)), ElementsAre(1.0, 3.0, 1.75 / 2.25));
}

TEST(PosWeight, SaysWhatIsWrong) {
  const auto refused = [](const std::string& loss, const Dataset& data,
                          const std::string& message) {
    expect_throws<ConfigError>(
        [&] { LossFunction::from_config(parse_yaml("loss: {" + loss + "}", "c.yaml"), data); },
        message);
  };
  const std::string binary = "type: binary_cross_entropy, pos_weight: ";
  refused(binary + "high", decisions(),
          "loss.pos_weight: expected a number, a list of one for each output, or balanced, found "
          "'high'");
  refused(binary + "-1", decisions(), "loss.pos_weight: expected a finite number of at least 0");
  refused(binary + "[1, 2]", decisions(),
          "loss.pos_weight: expected 3 numbers, one for each output");
  refused(binary + "[1, -2, 2]", decisions(), "loss.pos_weight.1: expected a finite number");
  refused("type: cross_entropy, pos_weight: 2", classes(),
          "loss.pos_weight: belongs to binary_cross_entropy, and the loss is cross_entropy");
  const ArrayDataset zeros({.example_shape = {1},
                            .inputs = std::vector<float>{1, 2},
                            .targets = {1, 0, 0, 0},
                            .num_outputs = 2});
  refused(binary + "balanced", zeros,
          "loss.pos_weight: balanced needs targets of 0 and of 1 for each output, and output 1 has "
          "only 0; give a list of weights");
}

}  // namespace
}  // namespace lacuna::class_balance_test
