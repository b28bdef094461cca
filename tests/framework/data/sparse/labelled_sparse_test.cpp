#include "lacuna/framework/data/sparse/labelled_sparse.hpp"

#include <gmock/gmock.h>

#include "framework/data/data_files.h"
#include "lacuna/framework/config/sparse_examples.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/first_batch.hpp"
#include "lacuna/framework/io/yaml.h"

namespace lacuna::labelled_sparse_test {
namespace {

using test::message_of;
using test::write_gzip;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kSparseText =
    "3 6 4\n"
    "2,0 5:0.5 1:-2\n"
    " 0:1e1\n"
    "3\n";

SparseExamples read_sparse(const std::string& text) {
  const TemporaryFolder folder;
  return read_labelled_sparse(folder.write("t.txt", text));
}

std::string sparse_error(const std::string& text) {
  const std::string message = message_of<DataError>([&] { read_sparse(text); });
  return message.substr(std::min(message.find("t.txt"), message.size()));
}

TEST(LabelledSparseFile, ReadsExamples) {
  for (const std::string& text : {std::string(kSparseText), std::string(kSparseText) + "\n\r\n",
                                  std::string("3 6 4\r\n2,0 5:0.5 1:-2\r\n 0:1e1\r\n3"),
                                  std::string("\xEF\xBB\xBF") + kSparseText}) {
    const SparseExamples e = read_sparse(text);
    EXPECT_EQ(e.features, 6);
    EXPECT_EQ(e.labels, 4);
    EXPECT_THAT(e.feature_begin, ElementsAre(0, 2, 3, 3));
    EXPECT_THAT(e.feature_ids, ElementsAre(1, 5, 0));
    EXPECT_THAT(e.values, ElementsAre(-2, 0.5, 10));
    EXPECT_THAT(e.label_begin, ElementsAre(0, 2, 2, 3));
    EXPECT_THAT(e.label_ids, ElementsAre(0, 2, 3));
  }
}

TEST(LabelledSparseFile, ReadsNumbersThatAFloatHasAsZero) {
  EXPECT_THAT(read_sparse("1 6 4\n1 0:1e-50 2:-3e-60 3:2\n").values, ElementsAre(0, 0, 2));
}

TEST(LabelledSparseFile, ReadsPackedFilesAndLinesAcrossPieces) {
  std::string text = "20000 100000 50000\n";
  for (int i = 0; i < 20000; ++i) {
    text += std::to_string(i) + " ";
    for (int f = 0; f < 10; ++f) text += std::to_string(i + 1000 * f) + ":0.25 ";
    text += "\n";
  }
  ASSERT_GT(text.size(), size_t{1} << 21);
  const TemporaryFolder folder;
  const SparseExamples e = read_labelled_sparse(write_gzip(folder / "t.txt.gz", text));
  EXPECT_EQ(e.size(), 20000);
  for (int64_t i = 0; i < e.size(); ++i) {
    ASSERT_EQ(e.label_ids[static_cast<size_t>(i)], i);
    ASSERT_EQ(e.feature_ids[static_cast<size_t>(10 * i + 3)], i + 3000);
  }
}

TEST(LabelledSparseFile, NamesTheLineOfAMistake) {
  EXPECT_EQ(sparse_error(""), "t.txt: the file is empty");
  for (const char* first : {"3 6\n", "3 6 4 1\n", "3 6 x\n", "0 6 4\n", "3 -6 4\n", "3 6 4.5\n",
                            "99999999999999999999 6 4\n", "2 x 3 4 5 6 7 8 9\n", "3 6 x 4\n"}) {
    EXPECT_THAT(sparse_error(first),
                HasSubstr("t.txt:1: expected the numbers of examples, features "
                          "and labels"))
        << first;
  }
  EXPECT_THAT(sparse_error("3 6 2000000\n"), HasSubstr("t.txt:1: 6 features and 2000000 labels; at "
                                                       "most 2147483647 and 1048576 can be read"));
  const auto of_line = [](const std::string& line) {
    return sparse_error("1 6 4\n" + line + "\n");
  };
  EXPECT_EQ(of_line("4 0:1"),
            "t.txt:2: label 4 is out of range: the first line declares 4 labels, counted from 0");
  EXPECT_THAT(of_line("-1 0:1"), HasSubstr("t.txt:2: label -1 is out of range"));
  EXPECT_EQ(of_line("1,,2 0:1"), "t.txt:2: expected labels with commas between them, found ''");
  EXPECT_EQ(of_line("a 0:1"), "t.txt:2: expected labels with commas between them, found 'a'");
  EXPECT_EQ(
      of_line("1 6:1"),
      "t.txt:2: feature 6 is out of range: the first line declares 6 features, counted from 0");
  EXPECT_EQ(of_line("1 2"), "t.txt:2: expected a feature as id:value, found '2'");
  EXPECT_EQ(of_line("1 2:"), "t.txt:2: expected a feature as id:value, found '2:'");
  EXPECT_EQ(of_line("1 2:1x"), "t.txt:2: expected a feature as id:value, found '2:1x'");
  EXPECT_EQ(of_line("1 2:nan"), "t.txt:2: the value of feature 2 is not a finite number");
  EXPECT_EQ(of_line("1 2:1e99"), "t.txt:2: the value of feature 2 is not a finite number");
  EXPECT_EQ(of_line("1,1 2:1"), "t.txt:2: label 1 appears twice");
  EXPECT_EQ(of_line("1 2:1 2:1"), "t.txt:2: feature 2 appears twice");
  EXPECT_EQ(of_line(""), "t.txt:2: expected labels and features, found a blank line");
  EXPECT_EQ(sparse_error("2 6 4\n1 0:1\n"),
            "t.txt: the first line declares 2 examples, but the file has 1");
  EXPECT_EQ(sparse_error("1 6 4\n1 0:1\n\n1 0:1\n"),
            "t.txt:4: the first line declares 1 example, but this is one more");
}

TEST(LabelledSparse, BatchesArePaddedToTheirLongestExample) {
  const LabelledSparse data(read_sparse(kSparseText));
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(data.example_shape(), (Shape{6}));
  EXPECT_EQ(data.num_classes(), 4);
  const std::vector<int64_t> indices{2, 0};
  const Batch batch = data.gather(indices);
  EXPECT_EQ(batch.size, 2);
  EXPECT_EQ(batch.inputs.to_vector(), (std::vector<float>{0, 0, -2, 0.5}));
  EXPECT_THAT(batch.named.at(kFeatureIds).values(), ElementsAre(-1, -1, 1, 5));
  EXPECT_THAT(batch.named.at(kLabelLists).values(), ElementsAre(3, kIgnoredLabel, 0, 2));
  EXPECT_EQ(data.gather(std::span(indices).first(1)).inputs.shape(), (Shape{1, 1}));
  const std::vector<int64_t> outside{3};
  EXPECT_THAT(message_of<StateError>([&] { data.gather(outside); }),
              HasSubstr("example 3 is out of range: the dataset has 3 examples"));
}

TEST(LabelledSparse, TheFirstBatchTellsWhatExamplesComeWith) {
  const auto data = std::make_shared<const LabelledSparse>(read_sparse(kSparseText));
  EXPECT_TRUE(gives_tensor(*data, kFeatureIds));
  EXPECT_TRUE(gives_tensor(*subset(data, {1}), kLabelLists));
  EXPECT_FALSE(gives_tensor(*subset(data, {}), kLabelLists));
  EXPECT_FALSE(gives_tensor(*data, "other"));
  const ArrayDataset dense({.example_shape = Shape{1},
                            .inputs = std::vector<float>{1, 2},
                            .labels = {0, 1},
                            .num_classes = 2});
  EXPECT_FALSE(gives_tensor(dense, kFeatureIds));
}

TEST(LabelledSparse, TheHashIsOfIdsLabelsAndValues) {
  const HashLimits limits;
  const auto hash = [&](const std::string& text, int64_t examples = 3) {
    return LabelledSparse(read_sparse(text)).hash(examples, limits);
  };
  const DataHash whole = hash(kSparseText);
  EXPECT_EQ(hash(std::string(kSparseText) + "\n"), whole);
  EXPECT_NE(hash("3 6 4\n2,0 5:0.5 1:-2\n 0:11\n3\n").inputs, whole.inputs);
  EXPECT_NE(hash("3 6 4\n2,0 5:0.5 1:-2\n 2:1e1\n3\n").inputs, whole.inputs);
  EXPECT_NE(hash("3 6 4\n2,0 5:0.5 1:-2\n 0:1e1\n2\n").answers, whole.answers);
  EXPECT_EQ(hash("3 6 4\n2,0 5:0.5 1:-2\n 0:1e1\n2\n", 2), hash(kSparseText, 2));
}

TEST(LabelledSparse, SplitsAreFilesOrNumbers) {
  if (!dataset_registry().contains("labelled_sparse")) register_datasets(dataset_registry());
  const TemporaryFolder folder;
  folder.write("train.txt", kSparseText);
  folder.write("test.txt", "1 6 4\n1 0:1\n");
  folder.write("other.txt", "1 7 4\n1 0:1\n");
  const auto load = [&](const std::string& more) {
    const Config data =
        parse_yaml("{type: labelled_sparse, train: " + folder / "train.txt" + more + "}", "c.yaml");
    return load_data(data, 0);
  };
  const DataSplits files = load(", test: " + folder / "test.txt");
  EXPECT_EQ(files.train->size(), 3);
  EXPECT_EQ(files.test->size(), 1);
  EXPECT_EQ(files.validation, nullptr);
  const DataSplits numbers = load(", test: 1, validation: 1");
  EXPECT_EQ(numbers.train->size(), 1);
  EXPECT_EQ(numbers.test->size(), 1);
  EXPECT_EQ(numbers.validation->size(), 1);
  EXPECT_THAT(message_of<DataError>([&] { load(", test: " + folder / "other.txt"); }),
              HasSubstr("other.txt:1: expected 6 features and 4 labels, as in the training "
                        "examples, found 7 features and 4 labels"));
  EXPECT_THAT(message_of<ConfigError>([&] { load(", sampling: balanced"); }),
              HasSubstr("balanced is for examples that have one class each"));
  EXPECT_THAT(message_of<ConfigError>([&] { load(", augment: {mixup: 0.2}"); }),
              HasSubstr("augment: this key does not apply to inputs that are sparse examples"));
}

}  // namespace
}  // namespace lacuna::labelled_sparse_test
