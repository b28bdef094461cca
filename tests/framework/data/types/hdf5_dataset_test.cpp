#include "lacuna/framework/data/types/hdf5_dataset.h"

#include <gmock/gmock.h>

#include <limits>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"

namespace lacuna::hdf5_dataset_test {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class LoadHdf5 : public ::testing::Test {
 protected:
  LoadHdf5() : path_(folder_ / "d.h5"), file_(Hdf5File::create(path_)) {
    data_.set("type", "hdf5");
    data_.set("path", path_);
  }

  void write_floats(const char* name, const Shape& shape, std::vector<float> values) {
    file_.write(name, Tensor::from(shape, values));
  }
  void write_integers(const char* name, const Shape& shape, std::vector<int64_t> values) {
    file_.write(name, shape, std::span<const int64_t>(values));
  }
  void write_bytes(const char* name, const Shape& shape, std::vector<uint8_t> values) {
    file_.write(name, shape, std::span<const uint8_t>(values));
  }

  DataSplits load() {
    file_.close();
    return load_hdf5(data_, 0);
  }
  // The message without the file's folder.
  std::string error() {
    const std::string message = message_of<DataError>([&] { load(); });
    return message.substr(std::min(message.find("d.h5"), message.size()));
  }

  TemporaryFolder folder_;
  std::string path_;
  Hdf5File file_;
  Config data_;
};

TEST_F(LoadHdf5, ReadsFloatsAndLabels) {
  write_floats("train_inputs", Shape{2, 2}, {1, 2, 3, 4});
  write_integers("train_targets", Shape{2}, {0, 3});
  const DataSplits splits = load();
  EXPECT_EQ(splits.train->num_classes(), 4);
  const Batch batch = splits.train->gather(std::vector<int64_t>{1});
  EXPECT_THAT(batch.inputs.to_vector(), ElementsAre(3, 4));
  EXPECT_THAT(batch.labels.values(), ElementsAre(3));
  EXPECT_EQ(splits.test, nullptr);
}

TEST_F(LoadHdf5, ReadsImagesUnderOtherNamesAndATestSplit) {
  write_bytes("a/x", Shape{2, 1, 2}, {0, 255, 255, 0});
  write_bytes("a/y", Shape{2}, {0, 1});
  write_bytes("b/x", Shape{1, 1, 2}, {255, 255});
  write_bytes("b/y", Shape{1}, {1});
  for (const auto& [key, name] : {std::pair{"train_inputs", "a/x"},
                                  {"train_targets", "a/y"},
                                  {"test_inputs", "b/x"},
                                  {"test_targets", "/b/y"}}) {
    data_.set(key, name);
  }
  const DataSplits splits = load();
  EXPECT_EQ(splits.train->example_shape(), (Shape{1, 2}));
  EXPECT_THAT(splits.train->gather(std::vector<int64_t>{0}).inputs.to_vector(), ElementsAre(0, 1));
  EXPECT_EQ(splits.test->size(), 1);
}

TEST_F(LoadHdf5, ReadsTargetsOfOneOrTwoDimensions) {
  data_.set("task", "regression");
  data_.set("test_inputs", "test_inputs");
  data_.set("test_targets", "test_targets");
  write_floats("train_inputs", Shape{2, 1}, {1, 2});
  write_floats("train_targets", Shape{2}, {0.5f, 1.5f});
  write_floats("test_inputs", Shape{1, 1}, {1});
  write_floats("test_targets", Shape{1, 1}, {7});
  const DataSplits splits = load();
  EXPECT_EQ(splits.train->num_outputs(), 1);
  EXPECT_THAT(splits.train->gather(std::vector<int64_t>{1}).targets.to_vector(), ElementsAre(1.5));
  EXPECT_THAT(splits.test->gather(std::vector<int64_t>{0}).targets.to_vector(), ElementsAre(7));
}

TEST_F(LoadHdf5, NamesAMissingDatasetAndTheNearest) {
  write_floats("train_input", Shape{1, 1}, {1});
  EXPECT_EQ(error(), "d.h5: dataset 'train_inputs': not in the file; did you mean 'train_input'?");
}

TEST_F(LoadHdf5, NamesTheNearestWithinAGroup) {
  write_floats("train/images", Shape{1, 1}, {1});
  data_.set("train_inputs", "train/image");
  EXPECT_THAT(error(), HasSubstr("did you mean 'train/images'?"));
}

TEST_F(LoadHdf5, RefusesAGroup) {
  write_floats("train_inputs/x", Shape{1, 1}, {1});
  EXPECT_EQ(error(), "d.h5: dataset 'train_inputs': is a group; expected an array");
}

TEST_F(LoadHdf5, RefusesInputsOfOneDimension) {
  write_floats("train_inputs", Shape{4}, {1, 2, 3, 4});
  EXPECT_THAT(error(), HasSubstr("'train_inputs': expected inputs [examples, …shape of one], found "
                                 "shape [4]"));
}

TEST_F(LoadHdf5, RefusesAnEmptyDataSet) {
  write_floats("train_inputs", Shape{0, 4}, {});
  EXPECT_THAT(error(), HasSubstr("'train_inputs': is empty: its shape is [0, 4]"));
}

TEST_F(LoadHdf5, RefusesCountsThatDiffer) {
  write_floats("train_inputs", Shape{2, 1}, {1, 2});
  write_integers("train_targets", Shape{3}, {0, 1, 0});
  EXPECT_EQ(error(),
            "d.h5: dataset 'train_inputs': holds 2 examples, dataset 'train_targets' 3; "
            "expected as many of each");
}

TEST_F(LoadHdf5, RefusesLabelsOutOfRange) {
  data_.set("num_classes", 2);
  write_floats("train_inputs", Shape{2, 1}, {1, 2});
  write_integers("train_targets", Shape{2}, {1, 2});
  EXPECT_THAT(error(), EndsWith("'train_targets': label 2 at index 1 is outside of [0, 2)"));
}

TEST_F(LoadHdf5, RefusesNegativeLabels) {
  write_floats("train_inputs", Shape{2, 1}, {1, 2});
  write_integers("train_targets", Shape{2}, {-1, 0});
  EXPECT_THAT(
      error(),
      HasSubstr("label -1 at index 0 is outside of [0, 1048576); number the classes 0, 1, 2, …"));
}

TEST_F(LoadHdf5, RefusesTargetsOfThreeDimensions) {
  data_.set("task", "regression");
  write_floats("train_inputs", Shape{2, 1}, {1, 2});
  write_floats("train_targets", Shape{2, 1, 1}, {1, 2});
  EXPECT_THAT(error(), HasSubstr("expected targets [examples] or [examples, outputs], found shape "
                                 "[2, 1, 1]"));
}

TEST_F(LoadHdf5, RefusesNumbersThatAreNotFinite) {
  write_floats("train_inputs", Shape{1, 3}, {1, 2, std::numeric_limits<float>::infinity()});
  EXPECT_EQ(error(),
            "d.h5: dataset 'train_inputs': expected finite numbers, found inf at flat index 2");
}

TEST_F(LoadHdf5, RefusesATestSplitOfAnotherShape) {
  write_floats("train_inputs", Shape{1, 2}, {1, 2});
  write_integers("train_targets", Shape{1}, {0});
  write_floats("test_inputs", Shape{1, 1}, {1});
  data_.set("test_inputs", "test_inputs");
  data_.set("test_targets", "train_targets");
  EXPECT_THAT(error(), HasSubstr("'test_inputs': test examples of shape [1] with 0 outputs; the "
                                 "training examples are of shape [2]"));
}

TEST_F(LoadHdf5, RefusesBytesNextToFloats) {
  write_floats("train_inputs", Shape{1, 2}, {1, 2});
  write_integers("train_targets", Shape{1}, {0});
  write_bytes("test_inputs", Shape{1, 2}, {1, 2});
  data_.set("test_inputs", "test_inputs");
  data_.set("test_targets", "train_targets");
  EXPECT_THAT(error(),
              HasSubstr("'test_inputs': the test inputs are bytes, and the training inputs "
                        "'train_inputs' are no bytes; bytes are divided by 255, so give "
                        "both in the same type"));
}

TEST_F(LoadHdf5, RefusesHalfATestSplit) {
  data_.set("test_inputs", "x");
  EXPECT_THAT(message_of<ConfigError>([&] { load(); }),
              HasSubstr("test_inputs and test_targets go together; found only one of them"));
}

TEST_F(LoadHdf5, RefusesAFileThatIsMissing) {
  data_.set("path", "no/such.h5");
  EXPECT_THAT(message_of<DataError>([&] { load(); }), HasSubstr("no/such.h5"));
}

}  // namespace
}  // namespace lacuna::hdf5_dataset_test
