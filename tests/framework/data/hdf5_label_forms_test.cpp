#include "lacuna/framework/data/types/hdf5_dataset.h"

#include <gmock/gmock.h>
#include <hdf5.h>

#include <limits>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"
#include "lacuna/framework/io/log.h"

namespace lacuna::hdf5_label_forms_test {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Hdf5LabelForms : public ::testing::Test {
 protected:
  Hdf5LabelForms() {
    data_.set("type", "hdf5");
    data_.set("path", folder_ / "d.h5");
  }
  // With so many examples of one feature each; `write` writes train_targets.
  template <class Write>
  void make(int64_t examples, const Write& write) {
    Hdf5File file = Hdf5File::create(folder_ / "d.h5");
    file.write("train_inputs", Tensor::zeros({examples, 1}));
    write(file);
    file.close();
  }
  void integers(const Shape& shape, const std::vector<int64_t>& values) {
    make(shape[0], [&](Hdf5File& file) { file.write("train_targets", shape, std::span(values)); });
  }
  void floats(const Shape& shape, const std::vector<float>& values) {
    make(shape[0],
         [&](Hdf5File& file) { file.write("train_targets", Tensor::from(shape, values)); });
  }
  std::vector<int64_t> labels() {
    const DataSplits splits = load_hdf5(data_, 0);
    classes_ = splits.train->num_classes();
    return dynamic_cast<const ArrayDataset&>(*splits.train).examples().labels;
  }
  std::string error() {
    return message_of<DataError>([&] { load_hdf5(data_, 0); });
  }

  TemporaryFolder folder_;
  Config data_;
  int64_t classes_ = 0;
};

TEST_F(Hdf5LabelForms, AreTheSameLabels) {
  for (const Shape& shape : {Shape{3}, Shape{3, 1}}) {
    integers(shape, {2, 0, 1});
    EXPECT_THAT(labels(), ElementsAre(2, 0, 1));
    floats(shape, {2, 0, 1});
    EXPECT_THAT(labels(), ElementsAre(2, 0, 1));
    EXPECT_EQ(classes_, 3);
  }
  integers({3, 4}, {0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0});
  EXPECT_THAT(labels(), ElementsAre(2, 0, 1));
  EXPECT_EQ(classes_, 4);  // as many as the rows have
  floats({3, 3}, {0, 0, 1, 1, 0, 0, 0, 1, 0});
  EXPECT_THAT(labels(), ElementsAre(2, 0, 1));
  data_.set("num_classes", 5);
  EXPECT_THAT(error(), HasSubstr("has one-hot rows of 3 classes, and there are 5"));
}

TEST_F(Hdf5LabelForms, ThatAreTextAreNamesOfClasses) {
  const char* const names[] = {"dog", "cat", "c\u00e9t", "cat"};
  char fixed[4][6] = {"dog", "cat", "c\u00e9t", "cat"};
  for (const bool is_variable : {true, false}) {
    make(4, [](Hdf5File&) {});
    const hid_t file = H5Fopen((folder_ / "d.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const hsize_t count = 4;
    const hid_t space = H5Screate_simple(1, &count, nullptr), type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, is_variable ? H5T_VARIABLE : sizeof fixed[0]);
    H5Tset_cset(type, H5T_CSET_UTF8);
    const hid_t set =
        H5Dcreate2(file, "train_targets", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const void* data = is_variable ? static_cast<const void*>(names) : fixed;
    EXPECT_GE(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), 0);
    H5Dclose(set);
    H5Tclose(type);
    H5Sclose(space);
    H5Fclose(file);
    EXPECT_THAT(labels(), ElementsAre(2, 0, 1, 0));
    EXPECT_EQ(classes_, 3);
    EXPECT_THAT(load_hdf5(data_, 0).train->class_names(), ElementsAre("cat", "c\u00e9t", "dog"));
  }
  data_.set("num_classes", 3);
  EXPECT_THAT(error(), HasSubstr("leave data.num_classes out"));
}

TEST_F(Hdf5LabelForms, ThatAreNotClearAreRefusedWithTheWayOut) {
  floats({2}, {0, 0.5f});
  EXPECT_THAT(error(), HasSubstr("found 0.5 at flat index 1; set data.task: regression if"));
  floats({2, 1}, {0, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_THAT(error(), HasSubstr("found nan at flat index 1"));
  floats({2}, {0, 1e30f});
  EXPECT_THAT(error(), HasSubstr("at flat index 1"));
  floats({2, 2}, {0.1f, 0.9f, 1, 0});
  EXPECT_THAT(error(), HasSubstr("with the value 0.1; set data.task: regression"));
  integers({2, 2}, {1, 0, 1, 1});
  EXPECT_THAT(error(), HasSubstr("whose row 1 is none; set data.task: regression for several"));
  integers({2, 2}, {1, 0, 0, 0});
  EXPECT_THAT(error(), HasSubstr("`scores.argmax(axis=1)`"));
  integers({2, 1, 1}, {0, 1});
  EXPECT_THAT(error(), HasSubstr("found shape [2, 1, 1]"));
  make(1, [](Hdf5File& file) { file.write_text("train_targets", "cat"); });
  EXPECT_THAT(error(), HasSubstr("found shape []"));
}

// Warnings of load_data on the console.
class LoadWarnings : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!dataset_registry().contains("glyphs")) register_datasets(dataset_registry());
  }
  std::string warning(const Config& data) {
    log_to_console(LogLevel::Warning);
    ::testing::internal::CaptureStderr();
    load_data(data, 0);
    const std::string text = ::testing::internal::GetCapturedStderr();
    stop_logging();
    return text;
  }
  TemporaryFolder folder_;
};

class ChannelsLast : public LoadWarnings {
 protected:
  // Two examples whose bytes count up.
  Config make(const Shape& shape) {
    Hdf5File file = Hdf5File::create(folder_ / "d.h5");
    std::vector<uint8_t> bytes;
    for (int64_t i = 0; i < shape.numel(); ++i) bytes.push_back(static_cast<uint8_t>(i));
    file.write("train_inputs", shape, std::span<const uint8_t>(bytes));
    const std::vector<int64_t> labels = {0, 1};
    file.write("train_targets", Shape{2}, std::span<const int64_t>(labels));
    file.close();
    Config data;
    data.set("type", "hdf5");
    data.set("path", folder_ / "d.h5");
    return data;
  }
};

TEST_F(ChannelsLast, AreTurnedToTheFront) {
  const Config data = make({2, 2, 2, 3});
  Config last = data.clone();
  last.set("channels", "last");
  const DataSplits splits = load_hdf5(last, 0);
  EXPECT_EQ(splits.train->example_shape(), (Shape{3, 2, 2}));
  const auto& examples = dynamic_cast<const ArrayDataset&>(*splits.train).examples();
  EXPECT_THAT(std::get<std::vector<uint8_t>>(examples.inputs),
              ElementsAre(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, 12, 15, 18, 21, 13, 16, 19, 22, 14,
                          17, 20, 23));
}

TEST_F(ChannelsLast, AreWarnedOfWhereSizesLookLikeIt) {
  for (const int64_t channels : {1, 3, 4}) {
    Config data = make({2, 5, 6, channels});
    EXPECT_THAT(warning(data), HasSubstr("set data.channels: last"));
    data.set("channels", "last");
    EXPECT_EQ(warning(data), "");
  }
  for (const Shape& shape :
       {Shape{2, 3, 5, 6}, Shape{2, 5, 6, 2}, Shape{2, 3, 3, 3}, Shape{2, 6}}) {
    EXPECT_EQ(warning(make(shape)), "") << shape.to_string();
  }
}

TEST_F(ChannelsLast, NeedChannelsAndAKnownName) {
  Config data = make({2, 6});
  data.set("channels", "last");
  EXPECT_THAT(message_of<DataError>([&] { load_hdf5(data, 0); }),
              HasSubstr("without channels; leave out data.channels: last"));
  data.set("channels", "middle");
  EXPECT_THAT(message_of<ConfigError>([&] { load_hdf5(data, 0); }), HasSubstr("first or last"));
}

class LabelGaps : public LoadWarnings {
 protected:
  // A file of the type with these labels.
  Config data_of(const std::string& type, const std::vector<int64_t>& labels) {
    Config data;
    data.set("type", type);
    std::string lines = type == "csv" ? "a,label\n" : "";
    for (const int64_t label : labels) {
      lines +=
          type == "csv" ? "1," + std::to_string(label) + "\n" : std::to_string(label) + " a word\n";
    }
    if (type == "hdf5") {
      Hdf5File file = Hdf5File::create(folder_ / "d.h5");
      const auto count = static_cast<int64_t>(labels.size());
      file.write("train_inputs", Tensor::zeros({count, 1}));
      file.write("train_targets", Shape{count}, std::span(labels));
      file.close();
      data.set("path", folder_ / "d.h5");
    } else {
      data.set("train", folder_.write("d.txt", lines));
    }
    return data;
  }
};

TEST_F(LabelGaps, AreWarnedOfForEveryTypeThatReadsLabels) {
  for (const std::string type : {"csv", "hdf5", "labelled_text"}) {
    SCOPED_TRACE(type);
    Config gaps = data_of(type, {1, 2, 10});
    EXPECT_THAT(warning(gaps),
                HasSubstr("no training example has the label 0, 3, 4, 5, 6, 7, 8, 9"));
    EXPECT_THAT(warning(data_of(type, {1, 2})), HasSubstr("has the label 0, and the model"));
    EXPECT_THAT(warning(data_of(type, {0, 20})), HasSubstr("7, 8 and 11 more"));
    Config given = data_of(type, {1, 2, 10});
    given.set("num_classes", 11);
    EXPECT_EQ(warning(given), "");
    EXPECT_EQ(warning(data_of(type, {2, 1, 0})), "");
  }
}

}  // namespace
}  // namespace lacuna::hdf5_label_forms_test
