#include "lacuna/framework/data/load_data.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;
using testing::message_of;

// A dataset that is no ArrayDataset, with a validation split of its own.
class Constant final : public Dataset {
 public:
  int64_t size() const override { return 4; }
  const Shape& example_shape() const override { return shape_; }
  int64_t num_classes() const override { return 2; }
  int64_t num_outputs() const override { return 0; }
  Batch gather(std::span<const int64_t> indices) const override {
    const auto size = static_cast<int64_t>(indices.size());
    return {.inputs = Tensor::zeros(Shape{size, 1}),
            .labels = IndexTensor(Shape{size}, std::vector<int64_t>(indices.size())),
            .targets = {},
            .size = size};
  }

 private:
  Shape shape_{1};
};

class LoadData : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (dataset_registry().contains("glyphs")) return;
    register_datasets(dataset_registry());
    dataset_registry().add("constant", "for this test", [](const Config&, uint64_t) {
      const auto all = std::make_shared<const Constant>();
      return DataSplits{.train = all, .validation = all, .test = nullptr, .normalization = {}};
    });
  }

  // Ten examples of one feature: 0, 10, 20, …; the targets are their numbers.
  LoadData() {
    std::string text = "x,y\n";
    for (int i = 0; i < 10; ++i) text += std::to_string(10 * i) + "," + std::to_string(i) + "\n";
    csv_.set("type", "csv");
    csv_.set("task", "regression");
    csv_.set("train", folder_.write("train.csv", text));
    csv_.set("test", folder_.write("test.csv", "x,y\n100,7\n"));
    glyphs_.set("type", "glyphs");
    glyphs_.set("train_size", 30);
    glyphs_.set("test_size", 10);
  }

  static std::vector<float> inputs(const std::shared_ptr<const Dataset>& dataset) {
    std::vector<int64_t> all(static_cast<size_t>(dataset->size()));
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
    return dataset->gather(all).inputs.to_vector();
  }
  static std::string error(const Config& data) {
    return message_of<ConfigError>([&] { load_data(data, 0); });
  }

  TemporaryFolder folder_;
  Config csv_, glyphs_;
};

TEST_F(LoadData, DispatchesOnTheType) {
  EXPECT_EQ(load_data(csv_, 0).train->num_outputs(), 1);
  EXPECT_EQ(load_data(glyphs_, 0).train->num_classes(), 10);
  EXPECT_THAT(dataset_registry().names(),
              ElementsAre("constant", "csv", "glyphs", "hdf5", "mnist", "synthetic"));
}

TEST_F(LoadData, RefusesAnUnknownType) {
  EXPECT_THAT(error(Config::map({{"type", "glyps"}})),
              HasSubstr("type: unknown dataset 'glyps'; did you mean 'glyphs'?"));
}

TEST_F(LoadData, UnknownKeysAreLeftForTheCallerToFind) {
  csv_.set("labelcolumn", 1);
  load_data(csv_, 0);
  EXPECT_THAT(message_of<ConfigError>([&] { csv_.require_all_read(); }),
              HasSubstr("unknown key 'labelcolumn'; did you mean 'label_column'?"));
}

TEST_F(LoadData, WritesDefaultsIntoTheConfig) {
  load_data(glyphs_, 0);
  EXPECT_EQ(glyphs_.required<std::string>("normalize"), "unit");
  EXPECT_EQ(glyphs_.required<double>("validation"), 0);
  load_data(csv_, 0);
  EXPECT_EQ(csv_.required<std::string>("normalize"), "none");
}

TEST_F(LoadData, HoldsOutACountOrAFraction) {
  for (const Config& validation : {Config(3), Config(0.3), Config(0.26)}) {
    csv_.set("validation", validation);
    const DataSplits splits = load_data(csv_, 1);
    EXPECT_EQ(splits.train->size(), 7);
    ASSERT_EQ(splits.validation->size(), 3);
    std::vector<float> all = inputs(splits.train);
    EXPECT_TRUE(std::ranges::is_sorted(all));
    for (const float value : inputs(splits.validation)) all.push_back(value);
    EXPECT_EQ(std::set<float>(all.begin(), all.end()).size(), 10u);
  }
  csv_.set("validation", 0.01);  // a fraction gives at least one
  EXPECT_EQ(load_data(csv_, 1).validation->size(), 1);
  csv_.set("validation", 0);
  EXPECT_EQ(load_data(csv_, 1).validation, nullptr);
}

TEST_F(LoadData, HeldOutExamplesDependOnTheSeed) {
  csv_.set("validation", 4);
  const auto held_out = [&](uint64_t seed) { return inputs(load_data(csv_, seed).validation); };
  EXPECT_EQ(held_out(1), held_out(1));
  EXPECT_NE(held_out(1), held_out(2));
}

TEST_F(LoadData, RefusesAValidationSplitThatCannotBe) {
  csv_.set("validation", 10);
  EXPECT_THAT(error(csv_), HasSubstr("validation: holds out 10 of 10 training examples"));
  csv_.set("validation", 0.99);
  EXPECT_THAT(error(csv_), HasSubstr("validation: holds out 0.99 of 10 training examples"));
  for (const double bad : {-0.5, 2.5}) {
    csv_.set("validation", bad);
    EXPECT_THAT(error(csv_), HasSubstr("validation: expected a count (0, 1, 2, …) or a fraction"));
  }
}

TEST_F(LoadData, LimitsTheTrainingExamplesOnly) {
  csv_.set("limit", 4);
  csv_.set("validation", 1);
  const DataSplits splits = load_data(csv_, 0);
  EXPECT_EQ(splits.train->size(), 3);
  EXPECT_THAT(inputs(splits.train), Each(Le(30)));
  EXPECT_THAT(inputs(splits.validation), Each(Le(30)));
  EXPECT_EQ(splits.test->size(), 1);
  csv_.set("limit", 0);
  EXPECT_THAT(error(csv_), HasSubstr("limit: expected an integer of at least 1, found '0'"));
}

TEST_F(LoadData, StandardNormalizationIsOfTheTrainingExamplesThatStay) {
  csv_.set("normalize", "standard");
  csv_.set("validation", 3);
  const DataSplits splits = load_data(csv_, 0);
  double sum = 0, squares = 0;
  for (const double value : inputs(splits.train)) {
    sum += value;
    squares += value * value;
  }
  // Sums of 7 float32 values of size 1.
  EXPECT_NEAR(sum, 0, 1e-5);
  EXPECT_NEAR(squares / 7, 1, 1e-5);
  const double mean = splits.normalization.mean[0], std = splits.normalization.std[0];
  EXPECT_NEAR(inputs(splits.test)[0], (100 - mean) / std, 1e-5);
}

TEST_F(LoadData, NormalizesByGivenNumbersOrLists) {
  csv_.set("normalize", Config::map({{"mean", 50}, {"std", 25}}));
  EXPECT_THAT(inputs(load_data(csv_, 0).test), ElementsAre(2));
  csv_.set("normalize", Config::map({{"mean", Config::list({100.0})}, {"std", 25}}));
  EXPECT_THAT(inputs(load_data(csv_, 0).test), ElementsAre(0));
}

TEST_F(LoadData, ImagesAreInUnitsOfOneUnlessNoneIsAskedFor) {
  const std::vector<float> unit = inputs(load_data(glyphs_, 0).train);
  EXPECT_THAT(unit, Each(Le(1)));
  glyphs_.set("normalize", "none");
  const std::vector<float> raw = inputs(load_data(glyphs_, 0).train);
  for (size_t i = 0; i < raw.size(); i += 97) EXPECT_NEAR(raw[i], 255 * unit[i], 1e-4);
}

TEST_F(LoadData, RefusesANormalizationThatCannotBe) {
  csv_.set("normalize", "unit");
  EXPECT_THAT(error(csv_), HasSubstr("normalize: unit is for images"));
  csv_.set("normalize", "minmax");
  EXPECT_THAT(error(csv_),
              HasSubstr("normalize: expected none, unit, standard or {mean: m, std: s}, found"));
  csv_.set("normalize", Config::map({{"mean", 0}, {"std", 0}}));
  EXPECT_THAT(error(csv_), HasSubstr("normalize: on the training split: the normalization's std"));
  csv_.set("normalize", Config::map({{"mean", 0}}));
  EXPECT_THAT(error(csv_), HasSubstr("normalize.std: a required key is missing"));
}

TEST_F(LoadData, ADatasetOfTheUsersOwnKeepsItsSplitsAndNormalization) {
  Config data = Config::map({{"type", "constant"}, {"limit", 3}});
  const DataSplits splits = load_data(data, 0);
  EXPECT_EQ(splits.train->size(), 3);
  EXPECT_EQ(splits.validation->size(), 4);
  data.set("normalize", "standard");
  EXPECT_THAT(error(data), HasSubstr("normalize: data of the type 'constant' sets its own"));
  data.erase("normalize");
  data.set("validation", 1);
  EXPECT_THAT(error(data), HasSubstr("validation: data of the type 'constant' has a validation"));
}

TEST(RegisterDatasets, RefusesToBeCalledTwice) {
  DatasetRegistry registry("dataset");
  register_datasets(registry);
  EXPECT_THAT(message_of<StateError>([&] { register_datasets(registry); }),
              HasSubstr("there is already a dataset named 'mnist'"));
}

}  // namespace
}  // namespace lacuna
