#include "lacuna/framework/data/types/mnist.h"

#include <gmock/gmock.h>

#include <numeric>
#include <optional>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "test_data.h"

namespace lacuna::mnist_test {
namespace {

using test::idx_images;
using test::idx_labels;
using test::message_of;
using test::write_gzip;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A data set of three training and two test images of 1 × 2 pixels.
void write_small_mnist(const TemporaryFolder& folder) {
  folder.write("train-images-idx3-ubyte", idx_images(3, 1, 2, "abcdef"));
  folder.write("train-labels-idx1-ubyte", idx_labels(3, "\7\1\11"));
  write_gzip(folder / "t10k-images-idx3-ubyte.gz", idx_images(2, 1, 2, "ghij"));
  write_gzip(folder / "t10k-labels-idx1-ubyte.gz", idx_labels(2, "\1\2"));
}

Config config_for(const std::string& dir) { return Config::map({{"type", "mnist"}, {"dir", dir}}); }

std::string error_in(const TemporaryFolder& folder) {
  return message_of<DataError>([&] { load_mnist(config_for(folder.path()), 0); });
}

TEST(Mnist, ReadsBothSplitsFromPlainAndGzippedFiles) {
  const TemporaryFolder folder;
  write_small_mnist(folder);
  const DataSplits splits = load_mnist(config_for(folder.path()), 0);
  EXPECT_EQ(splits.train->size(), 3);
  EXPECT_EQ(splits.train->example_shape(), (Shape{1, 2}));
  EXPECT_EQ(splits.train->num_classes(), 10);
  EXPECT_EQ(splits.validation, nullptr);
  EXPECT_EQ(splits.test->size(), 2);
  EXPECT_THAT(splits.train->gather(std::vector<int64_t>{0, 1, 2}).labels.values(),
              ElementsAre(7, 1, 9));
}

TEST(Mnist, NamesTheFilesItLooksForWhenTheFolderIsMissing) {
  EXPECT_THAT(
      message_of<DataError>([] { load_mnist(config_for("no/such/folder"), 0); }),
      AllOf(HasSubstr("no/such/folder: no such folder"), HasSubstr("train-images-idx3-ubyte"),
            HasSubstr("train-labels-idx1-ubyte"), HasSubstr("t10k-images-idx3-ubyte"),
            HasSubstr("t10k-labels-idx1-ubyte"), HasSubstr("plain or with .gz")));
}

TEST(Mnist, NeedsAFolder) {
  EXPECT_THAT(message_of<ConfigError>([] {
                load_mnist(Config::map({{"type", "mnist"}}), 0);
              }),
              HasSubstr("dir: a required key is missing"));
}

TEST(Mnist, NamesAMissingFile) {
  const TemporaryFolder folder;
  write_small_mnist(folder);
  std::filesystem::remove(folder / "t10k-labels-idx1-ubyte.gz");
  EXPECT_THAT(error_in(folder),
              HasSubstr(folder / "t10k-labels-idx1-ubyte" + ": no such file, with or without .gz"));
}

TEST(Mnist, RefusesCountsThatDiffer) {
  const TemporaryFolder folder;
  write_small_mnist(folder);
  folder.write("train-labels-idx1-ubyte", idx_labels(2, "\7\1"));
  EXPECT_THAT(error_in(folder), AllOf(HasSubstr("train-images-idx3-ubyte holds 3 images"),
                                      HasSubstr("train-labels-idx1-ubyte holds 2 labels")));
}

TEST(Mnist, RefusesALabelOutOfRange) {
  const TemporaryFolder folder;
  write_small_mnist(folder);
  folder.write("train-labels-idx1-ubyte", idx_labels(3, "\7\1\12"));
  EXPECT_THAT(error_in(folder), HasSubstr("train-labels-idx1-ubyte: label 10 at index 2 is outside "
                                          "of [0, 10)"));
  Config more = config_for(folder.path());
  more.set("num_classes", 11);
  EXPECT_EQ(load_mnist(more, 0).train->num_classes(), 11);
}

TEST(Mnist, RefusesTestImagesOfAnotherSize) {
  const TemporaryFolder folder;
  write_small_mnist(folder);
  folder.write("t10k-images-idx3-ubyte", idx_images(2, 2, 1, "ghij"));
  EXPECT_THAT(error_in(folder),
              HasSubstr("the test images are [2, 1], the training images [1, 2]"));
}

TEST(Mnist, RealFilesHoldWhatTheyAreKnownFor) {
  const std::optional<std::string> folder = mnist_folder();
  if (!folder) GTEST_SKIP() << "set LACUNA_DATA_DIR to a folder with mnist/";
  const DataSplits splits = load_mnist(config_for(*folder), 0);
  ASSERT_EQ(splits.train->size(), 60000);
  ASSERT_EQ(splits.test->size(), 10000);
  EXPECT_EQ(splits.train->example_shape(), (Shape{28, 28}));
  const std::vector<int64_t> first{0, 1, 2, 3, 4};
  EXPECT_THAT(splits.train->gather(first).labels.values(), ElementsAre(5, 0, 4, 1, 9));
  EXPECT_THAT(splits.test->gather(first).labels.values(), ElementsAre(7, 2, 1, 0, 4));
  const auto pixel_sum = [](const DataSplits&, const Dataset& dataset) {
    const auto& arrays = dynamic_cast<const ArrayDataset&>(dataset).examples();
    const auto& pixels = std::get<0>(arrays.inputs);
    return std::accumulate(pixels.begin(), pixels.end(), int64_t{0});
  };
  EXPECT_EQ(pixel_sum(splits, *splits.train), 1567298545);
  EXPECT_EQ(pixel_sum(splits, *splits.test), 264923200);
}

}  // namespace
}  // namespace lacuna::mnist_test
