#include "lacuna/framework/data/types/synthetic.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <set>

#include "framework/data/data_files.h"

#include "lacuna/framework/core/error.h"

namespace lacuna::synthetic_test {
namespace {

using test::message_of;
using ::testing::HasSubstr;

std::vector<int64_t> first(int64_t count) {
  std::vector<int64_t> indices(static_cast<size_t>(count));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return indices;
}

std::vector<int64_t> labels_of(const Batch& batch) {
  return {batch.labels.values().begin(), batch.labels.values().end()};
}

TEST(Synthetic, ExamplesAreAPureFunctionOfOptionsAndIndex) {
  const SyntheticDataset data({.features = 37, .size = 20});
  const Batch all = data.gather(first(20));
  const Batch some = data.gather(std::vector<int64_t>{7, 3, 7});
  ASSERT_EQ(some.inputs.shape(), (Shape{3, 37}));
  EXPECT_EQ(some.size, 3);
  const std::vector<float> whole = all.inputs.to_vector(), part = some.inputs.to_vector();
  for (size_t f = 0; f < 37; ++f) {
    EXPECT_EQ(part[f], whole[7 * 37 + f]);
    EXPECT_EQ(part[37 + f], whole[3 * 37 + f]);
    EXPECT_EQ(part[2 * 37 + f], part[f]);
  }
  EXPECT_EQ(labels_of(some)[1], labels_of(all)[3]);
  const SyntheticDataset again({.features = 37, .size = 20});
  EXPECT_EQ(again.gather(first(20)).inputs.to_vector(), whole);
}

TEST(Synthetic, AnotherSeedOrSplitGivesOtherExamples) {
  const auto inputs = [](SyntheticOptions options) {
    options.features = 9;
    return SyntheticDataset(options).gather(first(3)).inputs.to_vector();
  };
  EXPECT_NE(inputs({}), inputs({.seed = 1}));
  EXPECT_NE(inputs({}), inputs({.split = "test"}));
}

TEST(Synthetic, SplitsShareTheirClassMeans) {
  const SyntheticOptions train{.features = 50, .classes = 3, .noise = 0.0, .size = 40};
  SyntheticOptions test = train;
  test.split = "test";
  std::set<std::vector<float>> means, again;
  for (auto& [options, rows] : {std::pair{train, &means}, std::pair{test, &again}}) {
    const std::vector<float> inputs =
        SyntheticDataset(options).gather(first(40)).inputs.to_vector();
    for (auto row = inputs.begin(); row != inputs.end(); row += 50) rows->emplace(row, row + 50);
  }
  EXPECT_EQ(means.size(), 3u);
  EXPECT_EQ(means, again);
}

TEST(Synthetic, MeansStandAtTheInformativeFeatures) {
  const SyntheticDataset data(
      {.features = 1000, .classes = 2, .informative = 0.05, .noise = 0.0, .size = 1});
  const std::vector<float> mean = data.gather(first(1)).inputs.to_vector();
  int64_t other_than_zero = 0;
  for (const float value : mean) {
    EXPECT_EQ(value, std::round(value));
    other_than_zero += value != 0.0f ? 1 : 0;
  }
  EXPECT_GT(other_than_zero, 40);  // of 50 draws a few meet
  EXPECT_LE(other_than_zero, 50);
}

TEST(Synthetic, NoiseHasItsMeanAndDeviation) {
  constexpr int64_t kFeatures = 40001;
  const SyntheticDataset data(
      {.features = kFeatures, .informative = 1e-9, .noise = 0.5, .size = 1});
  double sum = 0.0, squares = 0.0;
  for (const float value : data.gather(first(1)).inputs.to_vector()) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(sum / kFeatures, 0.0, 0.01);  // four standard errors
  EXPECT_NEAR(std::sqrt(squares / kFeatures), 0.5, 0.01);
}

TEST(Synthetic, EveryClassOccurs) {
  const SyntheticDataset data({.features = 1, .classes = 7, .size = 200});
  EXPECT_EQ(data.num_classes(), 7);
  EXPECT_EQ(data.num_outputs(), 0);
  EXPECT_EQ(data.example_shape(), Shape{1});
  const std::vector<int64_t> labels = labels_of(data.gather(first(200)));
  EXPECT_EQ(std::set<int64_t>(labels.begin(), labels.end()).size(), 7u);
}

TEST(Synthetic, RefusesOptionsAndIndicesOutOfRange) {
  const auto refused = [](SyntheticOptions options) {
    return message_of<StateError>([&] { SyntheticDataset{options}; });
  };
  EXPECT_THAT(refused({.features = 0}), HasSubstr("needs 1 to 2147483647 features, found 0"));
  EXPECT_THAT(refused({.classes = 1}), HasSubstr("needs 2 to 1048576 classes, found 1"));
  EXPECT_THAT(refused({.informative = 0.0}), HasSubstr("an informative fraction in (0, 1]"));
  EXPECT_THAT(refused({.noise = -1.0}), HasSubstr("needs noise of at least 0"));
  EXPECT_THAT(refused({.size = 0}), HasSubstr("needs at least 1 example"));
  const SyntheticDataset data({.features = 2, .size = 5});
  EXPECT_EQ(message_of<StateError>([&] {
              data.gather(std::vector<int64_t>{0, 5});
            }),
            "example 5 is out of range: the dataset has 5 examples");
}

void know_datasets() {
  if (!dataset_registry().contains("synthetic")) register_datasets(dataset_registry());
}

TEST(LoadSynthetic, ReadsItsKeys) {
  know_datasets();
  const Config data = Config::map({{"type", "synthetic"},
                                   {"features", 12},
                                   {"classes", 3},
                                   {"train_size", 30},
                                   {"test_size", 10}});
  const DataSplits splits = load_data(data, 5);
  EXPECT_EQ(splits.train->size(), 30);
  EXPECT_EQ(splits.test->size(), 10);
  EXPECT_EQ(splits.validation, nullptr);
  EXPECT_EQ(splits.train->example_shape(), Shape{12});
  EXPECT_EQ(splits.train->num_classes(), 3);
  EXPECT_EQ(data.at("informative").as<double>(), 0.1);
}

TEST(LoadSynthetic, RefusesValuesOutOfRange) {
  know_datasets();
  const auto refused = [](const char* key, const Config& value) {
    Config data = Config::map({{"type", "synthetic"}});
    data.set(key, value);
    return message_of<ConfigError>([&] { load_data(data, 0); });
  };
  EXPECT_THAT(refused("features", 0), HasSubstr("features: expected an integer of at least 1"));
  EXPECT_THAT(refused("features", int64_t{1} << 31), HasSubstr("at most 2147483647 features"));
  EXPECT_THAT(refused("classes", 1), HasSubstr("classes: expected an integer of at least 2"));
  EXPECT_THAT(refused("classes", 1 << 21), HasSubstr("classes: expected at most 1048576 classes"));
  EXPECT_THAT(refused("informative", 1.5), HasSubstr("informative: expected a fraction in (0, 1]"));
  EXPECT_THAT(refused("noise", -0.5), HasSubstr("noise: "));
  EXPECT_THAT(refused("train_size", 0), HasSubstr("train_size: expected an integer of at least 1"));
  EXPECT_THAT(refused("seed", -1),
              HasSubstr("seed: expected an integer from 0 to 9223372036854775807"));
  EXPECT_THAT(refused("normalize", "standard"), HasSubstr("sets its own normalization"));
}

}  // namespace
}  // namespace lacuna::synthetic_test
