#include "lacuna/framework/data/types/cifar.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <numeric>
#include <optional>

#include "framework/data/cifar_files.h"
#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "test_data.h"

namespace lacuna::cifar_test {
namespace {

using test::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Config config_for(const std::string& dir) { return Config::map({{"dir", dir}}); }

std::string error10(const std::string& dir) {
  return message_of<DataError>([&] { load_cifar10(config_for(dir), 0); });
}

std::vector<int64_t> labels(const Dataset& dataset) {
  std::vector<int64_t> all(static_cast<size_t>(dataset.size()));
  std::iota(all.begin(), all.end(), int64_t{0});
  const Batch batch = dataset.gather(all);
  return {batch.labels.values().begin(), batch.labels.values().end()};
}

TEST(Cifar10, ReadsTheFiveFilesInOrderAndTheTestFile) {
  const TemporaryFolder folder;
  write_cifar10(folder.path());
  const DataSplits splits = load_cifar10(config_for(folder.path()), 0);
  EXPECT_EQ(splits.train->example_shape(), (Shape{3, 32, 32}));
  EXPECT_EQ(splits.train->num_classes(), 10);
  EXPECT_THAT(labels(*splits.train), ElementsAre(1, 2, 2, 3, 3, 4, 4, 5, 5, 6));
  EXPECT_THAT(labels(*splits.test), ElementsAre(0, 1));
  EXPECT_EQ(splits.validation, nullptr);
}

TEST(Cifar10, TakesTheFolderAboveToo) {
  const TemporaryFolder folder;
  write_cifar10(folder / "cifar-10-batches-bin");
  EXPECT_EQ(load_cifar10(config_for(folder.path()), 0).train->size(), 10);
}

TEST(Cifar10, SaysWhatIsMissing) {
  EXPECT_THAT(error10("no/such/folder"),
              AllOf(HasSubstr("no/such/folder: no such folder"), HasSubstr("cifar-10-batches-bin"),
                    HasSubstr("cifar-10-binary.tar.gz")));
  const TemporaryFolder folder;
  folder.write("data_batch_1", "of the Python version");
  EXPECT_THAT(error10(folder.path()),
              AllOf(HasSubstr(folder.path() + ": holds neither data_batch_1.bin, data_batch_2.bin"),
                    HasSubstr("cifar-10-batches-bin"), HasSubstr("Python")));
  write_cifar10(folder.path());
  std::filesystem::remove(folder / "data_batch_4.bin");
  EXPECT_THAT(error10(folder.path()), HasSubstr(folder / "data_batch_4.bin" + ": no such file"));
  write_cifar10(folder.path());
  std::filesystem::remove(folder / "test_batch.bin");
  EXPECT_THAT(error10(folder.path()), HasSubstr(folder / "test_batch.bin" + ": no such file"));
  EXPECT_THAT(message_of<ConfigError>([] { load_cifar10(Config::map(), 0); }),
              HasSubstr("dir: a required key is missing"));
}

TEST(Cifar10, RefusesFilesThatAreDamaged) {
  const TemporaryFolder folder;
  write_cifar10(folder.path());
  std::filesystem::resize_file(folder / "data_batch_3.bin", 6000);
  EXPECT_THAT(error10(folder.path()), HasSubstr("data_batch_3.bin: truncated"));
  std::filesystem::resize_file(folder / "data_batch_3.bin", 3073);  // where a record ends
  EXPECT_THAT(error10(folder.path()),
              HasSubstr("data_batch_3.bin: holds 1 image, data_batch_1.bin holds 2"));
  folder.write("data_batch_3.bin", "\13" + std::string(3072, 'x'));
  EXPECT_THAT(error10(folder.path()), HasSubstr("data_batch_3.bin: the label 11 of record 0"));
}

TEST(Cifar100, ReadsFineOrCoarseLabels) {
  const TemporaryFolder folder;
  write_cifar100(folder / "cifar-100-binary");
  Config data = config_for(folder.path());
  DataSplits splits = load_cifar100(data, 0);
  EXPECT_EQ(splits.train->num_classes(), 100);
  EXPECT_THAT(labels(*splits.train), ElementsAre(97, 98, 99));
  EXPECT_EQ(data.get("labels").text(), "fine");
  data.set("labels", "coarse");
  splits = load_cifar100(data, 0);
  EXPECT_EQ(splits.train->num_classes(), 20);
  EXPECT_THAT(labels(*splits.train), ElementsAre(17, 18, 19));
  EXPECT_EQ(splits.test->size(), 3);
  data.set("labels", "medium");
  EXPECT_THAT(message_of<ConfigError>([&] { load_cifar100(data, 0); }),
              HasSubstr("labels: expected fine or coarse, found 'medium'"));
}

TEST(Cifar100, RefusesTheFilesOfCifar10) {
  const TemporaryFolder folder;
  write_cifar10(folder.path());
  std::filesystem::rename(folder / "data_batch_1.bin", folder / "train.bin");
  EXPECT_THAT(message_of<DataError>([&] { load_cifar100(config_for(folder.path()), 0); }),
              HasSubstr("train.bin: truncated, or another kind of file: expected a whole number of "
                        "records of 3074 bytes"));
}

TEST(Cifar, ReadsTheImagesOfAFileAlone) {
  const TemporaryFolder folder;
  write_cifar10(folder / "10");
  write_cifar100(folder / "100");
  const Examples ten = read_cifar_images(folder / "10/data_batch_2.bin", CifarKind::Cifar10);
  EXPECT_EQ(ten.size(), 2);
  EXPECT_EQ(ten.num_classes, 0);
  EXPECT_EQ(std::get<0>(ten.inputs).back(), 41);
  const Examples hundred = read_cifar_images(folder / "100/test.bin", CifarKind::Cifar100);
  EXPECT_EQ(hundred.size(), 3);
  EXPECT_EQ(std::get<0>(hundred.inputs).back(), 2);
}

TEST(Cifar10, RealFilesHoldWhatTheyAreKnownFor) {
  const std::optional<std::string> folder = data_folder("cifar-10-batches-bin");
  if (!folder) GTEST_SKIP() << "set LACUNA_DATA_DIR to a folder with cifar-10-batches-bin/";
  const DataSplits splits = load_cifar10(config_for(*folder), 0);
  ASSERT_EQ(splits.train->size(), 50000);
  ASSERT_EQ(splits.test->size(), 10000);
  for (const auto& [split, count] : {std::pair(splits.train, 5000), std::pair(splits.test, 1000)}) {
    std::vector<int> counts(10);
    for (const int64_t label : dynamic_cast<const ArrayDataset&>(*split).examples().labels) {
      ++counts[static_cast<size_t>(label)];
    }
    EXPECT_EQ(counts, std::vector<int>(10, count));
  }
  // The data set's known means, to what JPEG copies of it differ by.
  std::vector<int64_t> all(50000);
  std::iota(all.begin(), all.end(), int64_t{0});
  const Normalization normalization =
      dynamic_cast<const ArrayDataset&>(*splits.train).standard_normalization(all);
  ASSERT_EQ(normalization.mean.size(), 3u);
  const std::vector<double> means{0.4914, 0.4822, 0.4465}, stds{0.2470, 0.2435, 0.2616};
  for (size_t channel = 0; channel < 3; ++channel) {
    EXPECT_NEAR(normalization.mean[channel], means[channel], 0.005);
    EXPECT_NEAR(normalization.std[channel], stds[channel], 0.005);
  }
}

}  // namespace
}  // namespace lacuna::cifar_test
