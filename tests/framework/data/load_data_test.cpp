#include "lacuna/framework/data/load_data.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/yaml.h"

namespace lacuna::load_data_test {
namespace {

using test::message_of;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;

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
    if (!dataset_registry().contains("glyphs")) register_datasets(dataset_registry());
    if (dataset_registry().contains("constant")) return;
    dataset_registry().add("constant", "for this test", [](const Config&, uint64_t) {
      const auto all = std::make_shared<const Constant>();
      return DataSplits{.train = all, .validation = all, .test = nullptr, .normalization = {}};
    });
    dataset_registry().add("float_images", "for this test", [](const Config&, uint64_t) {
      Examples examples{.example_shape = Shape{2, 2}, .inputs = std::vector<float>(8)};
      examples.labels = {0, 1};
      examples.num_classes = 2;
      const auto images = std::make_shared<const ArrayDataset>(std::move(examples));
      return DataSplits{.train = images, .validation = {}, .test = {}, .normalization = {}};
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
              ElementsAre("cifar10", "cifar100", "colour_glyphs", "constant", "csv", "float_images",
                          "glyphs", "hdf5", "image_folder", "labelled_sparse", "labelled_text",
                          "mnist", "npy", "npz", "synthetic", "text", "tokens"));
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
  for (const double bad : {-0.5, 1.0, 2.5}) {
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

TEST_F(LoadData, NormalizesColoursChannelByChannel) {
  Config data = Config::map({{"type", "colour_glyphs"}, {"train_size", 40}, {"test_size", 10}});
  data.set("normalize", "standard");
  data.set("validation", 5);
  const DataSplits splits = load_data(data, 0);
  ASSERT_EQ(splits.normalization.mean.size(), 3u);
  const std::vector<float> values = inputs(splits.train);
  for (size_t channel = 0; channel < 3; ++channel) {
    double sum = 0, squares = 0;
    for (size_t image = 0; image < 35; ++image) {
      for (size_t i = 0; i < 1024; ++i) {
        const double value = values[(3 * image + channel) * 1024 + i];
        sum += value;
        squares += value * value;
      }
    }
    EXPECT_NEAR(sum / (35 * 1024), 0, 1e-5);
    EXPECT_NEAR(squares / (35 * 1024), 1, 1e-5);
  }
  // What was computed, given: as eval and predict do.
  const std::vector<float> test = inputs(splits.test);
  data.set("normalize", Config::map({{"mean", Config::from_value(splits.normalization.mean)},
                                     {"std", Config::from_value(splits.normalization.std)}}));
  EXPECT_EQ(inputs(load_data(data, 0).test), test);
  data.set("normalize", Config::map({{"mean", Config::list({0.5, 0.5})}, {"std", 1}}));
  EXPECT_THAT(error(data), HasSubstr("normalize: on the training split: the normalization's mean "
                                     "has 2 values; expected one, or one for each of the 3"));
}

TEST_F(LoadData, AugmentationPadsWithWhatABlackPixelBecomes) {
  Config data = Config::map({{"type", "colour_glyphs"}, {"train_size", 10}, {"test_size", 10}});
  EXPECT_FALSE(load_data(data, 0).augment.any());
  EXPECT_FALSE(data.has("augment"));
  data.set("augment", Config::map({{"crop", 4}}));
  EXPECT_EQ(load_data(data, 0).augment.to_string(), "crop 4");
  EXPECT_THAT(load_data(data, 0).augment.padding, ElementsAre(0));
  EXPECT_EQ(data.get("augment").to_json(),
            R"({"crop": 4, "flip": false, "cutout": 0, "mixup": 0.0})");
  data.set("normalize", Config::map({{"mean", Config::list({0.5, 0.25, 0.0})}, {"std", 0.25}}));
  EXPECT_THAT(load_data(data, 0).augment.padding, ElementsAre(-2, -1, 0));
  data.set("normalize", Config::map({{"mean", 0.3}, {"std", Config::list({0.1, 0.2, 0.3})}}));
  const DataSplits splits = load_data(data, 0);
  // Exactly so: an image of zeros, normalized, is padding all over.
  Examples black{.example_shape = Shape{3, 1, 1}, .inputs = std::vector<uint8_t>(3)};
  const auto zeros = std::make_shared<const ArrayDataset>(std::move(black));
  EXPECT_EQ(splits.augment.padding, inputs(zeros->normalized(splits.normalization)));
}

TEST_F(LoadData, RefusesAnAugmentationThatCannotBe) {
  csv_.set("augment", Config::map({{"flip", true}}));
  EXPECT_THAT(error(csv_), HasSubstr("augment: only images can be augmented"));
  const auto message = [&](const char* key, const Config& value) {
    Config data = glyphs_.clone();
    data.set("augment", Config::map({{key, value}}));
    return message_of<ConfigError>([&] {
      load_data(data, 0);
      data.require_all_read();
    });
  };
  EXPECT_THAT(message("crop", 28), HasSubstr("augment: crop 28 must be smaller than the images"));
  EXPECT_THAT(message("cutout", -1),
              HasSubstr("augment.cutout: expected an integer of at least 0"));
  EXPECT_THAT(message("flip", 2), HasSubstr("augment.flip: expected true or false, found '2'"));
  EXPECT_THAT(message("flop", true), HasSubstr("unknown key 'flop'; did you mean 'flip'?"));
  glyphs_.set("augment", true);
  EXPECT_THAT(error(glyphs_), HasSubstr("augment: expected a map, found 'true'"));
}

TEST_F(LoadData, RefusesToPadFeaturesThatHaveANormalizationEach) {
  Config data = Config::map({{"type", "float_images"}, {"normalize", "standard"}});
  data.set("augment", Config::map({{"crop", 1}}));
  EXPECT_THAT(error(data), HasSubstr("augment: crop pads with the normalized value of 0, but here "
                                     "each feature has its own normalization"));
  data.set("augment", Config::map({{"flip", true}}));
  EXPECT_TRUE(load_data(data, 0).augment.flip);
  data.set("augment", Config::map({{"crop", 1}}));
  data.set("normalize", "none");
  EXPECT_EQ(load_data(data, 0).augment.crop, 1);
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

TEST_F(LoadData, NewRunsStateTheOrientationOfImagesInFolders) {
  const auto written = [](const std::string& yaml) {
    const Config data = parse_yaml(yaml, "c.yaml");
    write_new_run_keys(data);
    return data;
  };
  EXPECT_EQ(written("{type: image_folder, dir: x}").get("orientation").text(), "exif");
  const std::string stored = "{type: image_folder, orientation: stored}";
  EXPECT_EQ(written(stored), parse_yaml(stored, "c.yaml"));
  EXPECT_EQ(written("{type: mnist}"), parse_yaml("{type: mnist}", "c.yaml"));
  EXPECT_FALSE(written("3").is_map());
}

TEST_F(LoadData, RefusesAnotherNumberOfClassesThanTheDatas) {
  const auto with = [](int64_t num_classes) {
    return Config::map({{"type", "float_images"}, {"num_classes", num_classes}});
  };
  EXPECT_THAT(error(with(5)),
              HasSubstr("num_classes: is 5, and the data has 2 classes; leave this"));
  EXPECT_EQ(load_data(with(2), 0).train->num_classes(), 2);
}

TEST_F(LoadData, TellsOfClassesThatALimitLeavesOut) {
  Config data = Config::map({{"type", "float_images"}, {"limit", 1}});
  log_to_console(LogLevel::Warning);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(load_data(data, 0).train->size(), 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("limit: the first examples, which are trained on, do not have the classes "
                        "1; shuffle the files, or give a larger limit"));
  data.set("limit", 2);
  ::testing::internal::CaptureStderr();
  load_data(data, 0);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  const std::string lines = folder_.write("lines.txt", "0\tone\n1\ttwo\n2\tthree\n");
  for (const bool is_streamed : {false, true}) {
    Config text = Config::map({{"type", "labelled_text"}, {"train", lines}, {"limit", 1}});
    text.set("streamed", is_streamed);
    ::testing::internal::CaptureStderr();
    load_data(text, 0);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("not have the classes 1, 2;"));
  }
  stop_logging();
}

TEST_F(LoadData, AddsAChannelToGreyImages) {
  glyphs_.set("validation", 4);
  const DataSplits as_they_are = load_data(glyphs_, 3);
  Config with_channel = glyphs_.clone();
  with_channel.set("add_channel", true);
  const DataSplits images = load_data(with_channel, 3);
  for (auto split : {&DataSplits::train, &DataSplits::validation, &DataSplits::test}) {
    EXPECT_EQ((images.*split)->example_shape(), (Shape{1, 28, 28}));
    EXPECT_EQ(inputs(images.*split), inputs(as_they_are.*split));
  }
  EXPECT_EQ(images.hashes.train->inputs, as_they_are.hashes.train->inputs);
  with_channel.set("add_channel", false);
  EXPECT_EQ(load_data(with_channel, 3).train->example_shape(), (Shape{28, 28}));
}

TEST_F(LoadData, AddsNoChannelToOtherExamples) {
  csv_.set("add_channel", true);
  EXPECT_THAT(error(csv_), HasSubstr("add_channel: this key is for grey images of shape [rows, "
                                     "columns] that are stored as arrays; these examples have "
                                     "shape [1]"));
  EXPECT_THAT(error(Config::map({{"type", "constant"}, {"add_channel", true}})),
              HasSubstr("these examples come one by one"));
  EXPECT_THAT(error(Config::map({{"type", "glyphs"}, {"add_channel", "x"}})),
              HasSubstr("add_channel"));
}

}  // namespace
}  // namespace lacuna::load_data_test
