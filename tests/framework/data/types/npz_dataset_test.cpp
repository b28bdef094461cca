#include "lacuna/framework/data/types/npz_dataset.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/io/storage/npy_header.hpp"
#include "lacuna/framework/io/storage/zip_archive.hpp"

namespace lacuna::npz_dataset_test {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string npy(const std::string& descr, const std::vector<int64_t>& shape,
                const std::string& bytes) {
  return render_npy_header(descr, shape) + bytes;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), sizeof(T) * values.size()};
}

class NumpyData : public ::testing::Test {
 protected:
  NumpyData() {
    if (!dataset_registry().contains("glyphs")) register_datasets(dataset_registry());
  }
  // An archive of these arrays, and the configuration that reads it.
  Config archive(const std::vector<std::pair<std::string, std::string>>& arrays) const {
    std::ofstream stream(folder_ / "d.npz", std::ios::binary);
    ZipWriter zip(stream);
    for (const auto& [name, bytes] : arrays) {
      const std::span<const std::byte> part = std::as_bytes(std::span(bytes));
      zip.add(name + ".npy", std::span(&part, 1));
    }
    zip.finish();
    return Config::map({{"type", "npz"}, {"path", folder_ / "d.npz"}});
  }
  // Labels, of as many examples of one feature.
  Config labels(int64_t count, const std::string& targets) const {
    const std::vector<float> inputs(static_cast<size_t>(count), 0.5f);
    return archive(
        {{"train_inputs", npy("<f4", {count, 1}, raw(inputs))}, {"train_targets", targets}});
  }
  static const Examples& examples(const DataSplits& splits) {
    return dynamic_cast<const ArrayDataset&>(*splits.train).examples();
  }
  static std::vector<int64_t> labels_of(const Config& data) {
    return examples(load_npz(data, 0)).labels;
  }
  static std::string error(const Config& data) {
    return message_of<DataError>([&] { load_data(data, 0); });
  }

  TemporaryFolder folder_;
};

TEST_F(NumpyData, IsReadFromAnArchive) {
  Config data = archive({{"x_train", npy("|u1", {2, 1, 2}, "abcd")},
                         {"y_train", npy("<i4", {2}, raw<int32_t>({1, 0}))},
                         {"x_test", npy("|u1", {1, 1, 2}, "ef")},
                         {"y_test", npy("<u8", {1}, raw<uint64_t>({1}))}});
  EXPECT_THAT(error(data), HasSubstr("d.npz: array 'train_inputs': not in the file; valid names: "
                                     "x_train, y_train, x_test, y_test"));
  for (const char* split : {"train", "test"}) {
    data.set(split + std::string("_inputs"), "x_" + std::string(split));
    data.set(split + std::string("_targets"), "y_" + std::string(split));
  }
  const DataSplits splits = load_data(data, 0);
  EXPECT_TRUE(examples(splits).has_byte_inputs());  // as images are
  EXPECT_EQ(splits.train->example_shape(), (Shape{1, 2}));
  EXPECT_THAT(examples(splits).labels, ElementsAre(1, 0));
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_EQ(splits.test->num_classes(), 2);
  data.erase("test_targets");
  EXPECT_THAT(message_of<ConfigError>([&] { load_data(data, 0); }),
              HasSubstr("test_inputs and test_targets go together"));
}

TEST_F(NumpyData, MayBeOfAnyTypeOfNumbers) {
  for (const auto& [descr, bytes] :
       {std::pair{"<f4", raw<float>({1, -2, 3, 4})}, std::pair{"<f8", raw<double>({1, -2, 3, 4})},
        std::pair{"<i8", raw<int64_t>({1, -2, 3, 4})},
        std::pair{"|i1", std::string("\x01\xfe\x03\x04")},
        std::pair{">i2", std::string("\0\x01\xff\xfe\0\x03\0\x04", 8)}}) {
    const Config data = archive({{"train_inputs", npy(descr, {2, 2}, bytes)},
                                 {"train_targets", npy("<i8", {2}, raw<int64_t>({0, 1}))}});
    EXPECT_THAT(std::get<1>(examples(load_npz(data, 0)).inputs), ElementsAre(1, -2, 3, 4)) << descr;
  }
  Config bad = archive({{"train_inputs", npy("<f4", {2, 1}, raw<float>({1, 1e30f / 0.0f}))},
                        {"train_targets", npy("<i8", {2}, raw<int64_t>({0, 1}))}});
  EXPECT_THAT(error(bad), HasSubstr("array 'train_inputs': expected finite numbers, found inf"));
  bad = archive({{"train_inputs", npy("<c8", {2, 1}, std::string(16, '\0'))},
                 {"train_targets", npy("<i8", {2}, raw<int64_t>({0, 1}))}});
  EXPECT_THAT(error(bad), HasSubstr("expected numbers, found complex64"));
}

TEST_F(NumpyData, LabelsMayComeInAnyForm) {
  EXPECT_THAT(labels_of(labels(2, npy("|u1", {2}, std::string("\x02\0", 2)))), ElementsAre(2, 0));
  EXPECT_THAT(labels_of(labels(2, npy("|b1", {2, 1}, std::string("\1\0", 2)))), ElementsAre(1, 0));
  EXPECT_THAT(labels_of(labels(2, npy("<f8", {2}, raw<double>({3, 1})))), ElementsAre(3, 1));
  EXPECT_THAT(labels_of(labels(2, npy("|b1", {2, 2}, std::string("\0\1\1\0", 4)))),
              ElementsAre(1, 0));
  EXPECT_THAT(error(labels(2, npy("<f8", {2}, raw<double>({0.5, 1})))),
              HasSubstr("expected integer labels, found 0.5 at flat index 0"));
  EXPECT_THAT(error(labels(2, npy("<M8[ns]", {2}, std::string(16, '\0')))),
              HasSubstr("expected labels that are integers or text, found elements of type "
                        "datetime64"));
  EXPECT_THAT(error(labels(3, npy("<i8", {2}, raw<int64_t>({0, 1})))),
              HasSubstr("holds 3 examples, dataset 'train_targets' 2; expected as many of each"));
}

TEST_F(NumpyData, LabelsThatAreTextAreNamesOfClasses) {
  // "dog", "c\u00e9" and "\U0001f600" in UTF-32, and bytes.
  const std::vector<uint32_t> wide = {'d', 'o', 'g', 'c', 0xe9, 0, 0x1f600, 0, 0};
  std::string swapped = raw(wide);
  for (size_t i = 0; i < swapped.size(); i += 4) {
    std::swap(swapped[i], swapped[i + 3]);
    std::swap(swapped[i + 1], swapped[i + 2]);
  }
  for (const auto& [descr, bytes] :
       {std::pair{"<U3", raw(wide)}, std::pair{">U3", swapped},
        std::pair{"|S4", std::string("dog\0c\xc3\xa9\0\xf0\x9f\x98\x80", 12)}}) {
    const DataSplits splits = load_npz(labels(3, npy(descr, {3}, bytes)), 0);
    EXPECT_THAT(examples(splits).labels, ElementsAre(1, 0, 2)) << descr;
    EXPECT_THAT(splits.train->class_names(), ElementsAre("c\u00e9", "dog", "\U0001f600"));
  }
  EXPECT_THAT(error(labels(1, npy("<U1", {1}, raw<uint32_t>({0xd800})))),
              HasSubstr("has no text at element 0"));
  EXPECT_THAT(error(labels(2, npy("|S1", {2}, std::string("a\0", 2)))),
              HasSubstr("expected names of classes, which are text in UTF-8, found '' at index 1"));
  Config two = archive({{"train_inputs", npy("|u1", {2, 1}, "ab")},
                        {"train_targets", npy("|S1", {2}, "yn")},
                        {"test_inputs", npy("|u1", {1, 1}, "a")},
                        {"test_targets", npy("|S3", {1}, "yes")}});
  two.set("test_inputs", "test_inputs");
  two.set("test_targets", "test_targets");
  EXPECT_THAT(error(two), HasSubstr("array 'test_targets': expected classes of the training data"));
}

TEST_F(NumpyData, IsReadFromFilesOfOneArrayEach) {
  Config data = Config::map(
      {{"type", "npy"},
       {"x_train", folder_.write("x.npy", npy("<f4", {4, 1}, raw<float>({1, 2, 3, 4})))},
       {"y_train", folder_.write("y.npy", npy("<f4", {4}, raw<float>({5, 6, 7, 8})))},
       {"task", "regression"},
       {"test", 0.25}});
  const DataSplits splits = load_data(data, 0);
  EXPECT_EQ(splits.train->size(), 3);
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_EQ(splits.train->num_outputs(), 1);
  data.set("y_train", folder_.write("y.csv", "1\n"));
  EXPECT_THAT(error(data), HasSubstr("y.csv: expected an .npy file"));
  data.set("y_train", folder_ / "none.npy");
  EXPECT_THAT(error(data), HasSubstr("none.npy"));
}

TEST_F(NumpyData, GivesInputsToPredictFrom) {
  const Config none = Config::map();
  const std::string one = folder_.write("x.npy", npy("<f4", {2, 1}, raw<float>({1, 2})));
  EXPECT_THAT(std::get<1>(read_numpy_inputs(one, none, Shape{1}).inputs), ElementsAre(1, 2));
  archive({{"a", npy("|u1", {1, 1}, "a")}, {"inputs", npy("|u1", {1, 1}, "b")}});
  EXPECT_THAT(std::get<0>(read_numpy_inputs(folder_ / "d.npz", none, Shape{1}).inputs),
              ElementsAre('b'));
  archive({{"a", npy("|u1", {1, 1}, "a")}, {"b", npy("|u1", {1, 1}, "b")}});
  EXPECT_THAT(message_of<DataError>([&] { read_numpy_inputs(folder_ / "d.npz", none, Shape{1}); }),
              HasSubstr("none of its arrays (a, b) is called inputs"));
  EXPECT_THAT(std::get<0>(read_numpy_inputs(folder_ / "d.npz", Config::map({{"train_inputs", "a"}}),
                                            Shape{1})
                              .inputs),
              ElementsAre('a'));
}

}  // namespace
}  // namespace lacuna::npz_dataset_test
