#include "lacuna/framework/data/dataset.h"

#include <gmock/gmock.h>

#include <limits>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::dataset_test {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::HasSubstr;

Examples image_examples() {
  Examples examples;
  examples.example_shape = Shape{1, 2};
  examples.inputs = std::vector<uint8_t>{0, 255, 51, 102, 255, 255};
  examples.labels = {2, 0, 1};
  examples.num_classes = 3;
  return examples;
}

// Two examples of two channels of 1 × 2 pixels.
Examples channel_examples() {
  Examples examples;
  examples.example_shape = Shape{2, 1, 2};
  examples.inputs = std::vector<uint8_t>{0, 255, 51, 51, 102, 255, 51, 255};
  examples.labels = {0, 1};
  examples.num_classes = 2;
  return examples;
}

Examples table_examples() {
  Examples examples;
  examples.example_shape = Shape{2};
  examples.inputs = std::vector<float>{1, 10, 3, 10, 5, 10, 7, 10};
  examples.targets = {1, -1, 2, -2, 3, -3, 4, -4};
  examples.num_outputs = 2;
  return examples;
}

TEST(ArrayDataset, GathersBytesAsFractionsOfOneInTheOrderAsked) {
  const ArrayDataset dataset(image_examples());
  EXPECT_EQ(dataset.size(), 3);
  EXPECT_EQ(dataset.num_classes(), 3);
  EXPECT_EQ(dataset.num_outputs(), 0);
  const Batch batch = dataset.gather(std::vector<int64_t>{2, 0, 2});
  EXPECT_EQ(batch.size, 3);
  EXPECT_EQ(batch.inputs.shape(), (Shape{3, 1, 2}));
  EXPECT_THAT(batch.inputs.to_vector(), ElementsAre(1, 1, 0, 1, 1, 1));
  EXPECT_THAT(batch.labels.values(), ElementsAre(1, 2, 1));
  EXPECT_FALSE(batch.targets.defined());
}

TEST(ArrayDataset, GathersTargets) {
  const ArrayDataset dataset(table_examples());
  const Batch batch = dataset.gather(std::vector<int64_t>{3, 1});
  EXPECT_EQ(batch.inputs.shape(), (Shape{2, 2}));
  EXPECT_THAT(batch.inputs.to_vector(), ElementsAre(7, 10, 3, 10));
  EXPECT_EQ(batch.targets.shape(), (Shape{2, 2}));
  EXPECT_THAT(batch.targets.to_vector(), ElementsAre(4, -4, 2, -2));
  EXPECT_FALSE(batch.labels.defined());
}

TEST(ArrayDataset, GathersNoExamplesAsAnEmptyBatch) {
  const Batch batch = ArrayDataset(image_examples()).gather({});
  EXPECT_EQ(batch.size, 0);
  EXPECT_EQ(batch.inputs.shape(), (Shape{0, 1, 2}));
}

TEST(ArrayDataset, HoldsInputsWithoutTargetsToPredictFrom) {
  Examples examples = table_examples();
  examples.targets.clear();
  examples.num_outputs = 0;
  const Batch batch = ArrayDataset(std::move(examples)).gather(std::vector<int64_t>{0});
  EXPECT_FALSE(batch.labels.defined());
  EXPECT_FALSE(batch.targets.defined());
}

TEST(ArrayDataset, NormalizesPixelsAfterTheDivisionBy255) {
  const auto dataset = ArrayDataset(image_examples()).normalized({{0.2}, {0.5}});
  EXPECT_THAT(dataset->gather(std::vector<int64_t>{1}).inputs.to_vector(),
              ElementsAre(FloatNear(0.0f, 1e-7f), FloatEq(0.4f)));
}

TEST(ArrayDataset, NormalizesChannelsEachOrAllAlike) {
  const ArrayDataset dataset(channel_examples());
  const auto second = [&](Normalization normalization) {
    return dataset.normalized(std::move(normalization))
        ->gather(std::vector<int64_t>{1})
        .inputs.to_vector();
  };
  EXPECT_THAT(
      second({{0.4, 0.2}, {0.5, 0.25}}),
      ElementsAre(FloatNear(0.0f, 1e-6f), FloatEq(1.2f), FloatNear(0.0f, 1e-6f), FloatEq(3.2f)));
  EXPECT_THAT(second({{0.0}, {0.5, 0.25}}), ElementsAre(FloatEq(0.8f), 2, FloatEq(0.8f), 4));
  EXPECT_THAT(second({{0.0}, {0.5}}), ElementsAre(FloatEq(0.8f), 2, FloatEq(0.4f), 2));
}

TEST(ArrayDataset, NormalizesChannelsOfFloats) {
  Examples examples = channel_examples();
  examples.inputs = std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7};
  const auto dataset = ArrayDataset(std::move(examples)).normalized({{1, 2}, {1, 2}});
  EXPECT_THAT(dataset->gather(std::vector<int64_t>{1}).inputs.to_vector(),
              ElementsAre(3, 4, 2, 2.5));
}

TEST(ArrayDataset, NormalizesFeaturesEachOrAllAlike) {
  const ArrayDataset dataset(table_examples());
  EXPECT_THAT(
      dataset.normalized({{1, 8}, {2, 4}})->gather(std::vector<int64_t>{2}).inputs.to_vector(),
      ElementsAre(2, 0.5));
  EXPECT_THAT(dataset.normalized({{1}, {2}})->gather(std::vector<int64_t>{2}).inputs.to_vector(),
              ElementsAre(2, 4.5));
}

TEST(ArrayDataset, StandardNormalizationOfFeaturesLooksAtTheGivenExamplesOnly) {
  const Normalization standard =
      ArrayDataset(table_examples()).standard_normalization(std::vector<int64_t>{0, 2});
  EXPECT_THAT(standard.mean, ElementsAre(3, 10));
  EXPECT_THAT(standard.std, ElementsAre(2, 1));  // the second feature is constant
}

TEST(ArrayDataset, StandardNormalizationOfImagesIsOneForAllPixels) {
  const Normalization standard =
      ArrayDataset(image_examples()).standard_normalization(std::vector<int64_t>{0, 1});
  ASSERT_EQ(standard.mean.size(), 1u);
  EXPECT_NEAR(standard.mean[0], 0.4, 1e-12);  // 0, 1, 0.2, 0.4
  EXPECT_NEAR(standard.std[0], 0.374165738677, 1e-10);
}

TEST(ArrayDataset, StandardNormalizationOfImagesIsOneForEachChannel) {
  const Normalization standard =
      ArrayDataset(channel_examples()).standard_normalization(std::vector<int64_t>{0, 1});
  ASSERT_EQ(standard.mean.size(), 2u);
  ASSERT_EQ(standard.std.size(), 2u);
  EXPECT_NEAR(standard.mean[0], 0.6, 1e-12);  // 0, 1, 0.4, 1
  EXPECT_NEAR(standard.mean[1], 0.4, 1e-12);  // 0.2, 0.2, 0.2, 1
  EXPECT_NEAR(standard.std[0], 0.424264068712, 1e-10);
  EXPECT_NEAR(standard.std[1], 0.346410161514, 1e-10);
}

TEST(ArrayDataset, KnowsTheNamesOfItsClasses) {
  EXPECT_TRUE(ArrayDataset(image_examples()).class_names().empty());
  Examples examples = image_examples();
  examples.class_names = {"a", "b", "c"};
  const auto dataset = std::make_shared<const ArrayDataset>(examples);
  EXPECT_THAT(dataset->class_names(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(subset(dataset, {1})->class_names(), ElementsAre("a", "b", "c"));
  examples.class_names.pop_back();
  EXPECT_THAT(message_of<DataError>([&] { ArrayDataset(std::move(examples)); }),
              HasSubstr("expected one class name for each of 3 classes, found 2"));
}

TEST(ArrayDataset, ConstantFeatureWithRoundingGivesZeros) {
  Examples examples;
  examples.example_shape = Shape{1};
  examples.inputs = std::vector<float>(101, 0.1f);
  examples.targets.assign(101, 0.0f);
  examples.num_outputs = 1;
  const ArrayDataset dataset(std::move(examples));
  const std::vector<int64_t> some{0, 1, 2, 3, 4, 5, 6};
  const Normalization standard = dataset.standard_normalization(some);
  EXPECT_EQ(standard.std[0], 1.0);
  EXPECT_EQ(dataset.normalized(standard)->gather(some).inputs.data()[0], 0.0f);
}

TEST(ArrayDataset, RefusesAnIndexOutside) {
  const ArrayDataset dataset(image_examples());
  for (const int64_t index : {-1, 3}) {
    EXPECT_THAT(
        message_of<StateError>([&] {
          dataset.gather(std::vector<int64_t>{0, index});
        }),
        HasSubstr("example " + std::to_string(index) + " is out of range: the dataset has 3"));
  }
}

TEST(ArrayDataset, RefusesArraysThatDoNotFit) {
  const auto message = [](auto&& change) {
    Examples examples = image_examples();
    change(examples);
    return message_of<DataError>([&] { ArrayDataset dataset(examples); });
  };
  EXPECT_THAT(message([](Examples& e) { e.labels.pop_back(); }),
              HasSubstr("expected 3 labels for 3 inputs, found 2"));
  EXPECT_THAT(message([](Examples& e) { e.labels[1] = 3; }),
              HasSubstr("label 3 of example 1 is outside of [0, 3)"));
  EXPECT_THAT(message([](Examples& e) { e.example_shape = Shape{4}; }),
              HasSubstr("6 input values are not a whole number of examples of shape [4]"));
  EXPECT_THAT(message([](Examples& e) { e.example_shape = Shape{0}; }),
              HasSubstr("shape [0] hold no values"));
  EXPECT_THAT(message([](Examples& e) { e.num_outputs = 1; }),
              HasSubstr("not both; found 3 classes and 1 outputs"));
  EXPECT_THAT(message([](Examples& e) {
                e = table_examples();
                e.targets.pop_back();
              }),
              HasSubstr("expected 8 target values for 4 inputs, found 7"));
}

TEST(ArrayDataset, RefusesANormalizationThatDoesNotFit) {
  const ArrayDataset images(image_examples()), table(table_examples());
  const ArrayDataset channels(channel_examples());
  const auto message = [](const ArrayDataset& dataset, Normalization normalization) {
    return message_of<DataError>([&] { dataset.normalized(normalization); });
  };
  EXPECT_THAT(message(images, {{0, 0}, {1}}), HasSubstr("mean has 2 values; expected one (images"));
  EXPECT_THAT(message(channels, {{0, 0, 0, 0}, {1}}),
              HasSubstr("mean has 4 values; expected one, or one for each of the 2 channels"));
  EXPECT_THAT(message(table, {{0}, {1, 1, 1}}),
              HasSubstr("std has 3 values; expected one, or one for each of the 2 features"));
  EXPECT_THAT(message(table, {{0}, {0}}), HasSubstr("std must be at least 1e-30, found 0"));
  EXPECT_THAT(message(table, {{std::numeric_limits<double>::quiet_NaN()}, {1}}),
              HasSubstr("mean is not finite"));
}

TEST(Subset, MapsIndices) {
  const auto all = std::make_shared<const ArrayDataset>(image_examples());
  const auto part = subset(all, {2, 0});
  EXPECT_EQ(part->size(), 2);
  EXPECT_EQ(part->num_classes(), 3);
  EXPECT_EQ(part->num_outputs(), 0);
  EXPECT_EQ(part->example_shape(), (Shape{1, 2}));
  EXPECT_THAT(part->gather(std::vector<int64_t>{1, 0}).labels.values(), ElementsAre(2, 1));
  EXPECT_THAT(message_of<StateError>([&] { part->gather(std::vector<int64_t>{2}); }),
              HasSubstr("example 2 is out of range: the dataset has 2"));
  EXPECT_THAT(message_of<StateError>([&] { subset(all, {3}); }),
              HasSubstr("example 3 is out of range: the dataset has 3"));
}

}  // namespace
}  // namespace lacuna::dataset_test
