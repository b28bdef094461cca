// The forms in which sentences come: tables without a header, fastText's lines, labels that stand
// for names.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/data/types/labelled_text.hpp"

namespace lacuna::labelled_text_forms_test {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LabelledTextForms : public ::testing::Test {
 protected:
  LabelledTextForms() {
    if (!dataset_registry().contains("glyphs")) register_datasets(dataset_registry());
    data_.set("type", "labelled_text");
  }
  Config& set(const std::string& key, const Config& value) {
    data_.set(key, value);
    return data_;
  }
  std::vector<int64_t> labels(const Dataset& dataset) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < dataset.size(); ++i) {
      all.push_back(dataset.gather(std::vector<int64_t>{i}).labels.values()[0]);
    }
    return all;
  }
  std::string text(const Dataset& dataset, int64_t index) {
    const auto ids = dataset.gather(std::vector<int64_t>{index}).named.at("input_ids");
    return dataset.tokenizer()->decode({ids.values().begin(), ids.values().end()});
  }
  std::string error() {
    return message_of<DataError>([&] { load_data(data_, 0); });
  }
  std::string config_error() {
    return message_of<ConfigError>([&] { load_data(data_, 0); });
  }

  TemporaryFolder folder_;
  Config data_;
};

// As the files of AG News are.
constexpr const char* kNews =
    "\"3\",\"Wall St.\",\"Short \"\"sellers\"\" are back\"\n\"1\",\"Peace\",\"Talks, at "
    "last\"\n\"4\",\"Chips\",\"A new chip\"\n\"2\",\"Cup\",\"They won\"\n";

TEST_F(LabelledTextForms, TablesWithoutAHeader) {
  set("train", folder_.write("train.csv", kNews));
  set("header", false).set("text_column", 2);
  set("label_column", 0)
      .set("class_names", Config::map({{"1", "World"}, {"2", "Sports"}, {"3", "Business"}}));
  EXPECT_THAT(error(), HasSubstr("train.csv:3: expected one of the classes of the training data"));
  Config names = data_.get("class_names");
  names.set("4", "Sci/Tech");
  for (const bool streamed : {false, true}) {
    set("streamed", streamed);
    const DataSplits splits = load_data(data_, 0);
    EXPECT_THAT(splits.train->class_names(),
                ElementsAre("World", "Sports", "Business", "Sci/Tech"));
    EXPECT_THAT(labels(*splits.train), ElementsAre(2, 0, 3, 1));
    EXPECT_EQ(text(*splits.train, 0), "short \"sellers\" are back");
    EXPECT_TRUE(splits.columns.empty());  // they have no names
  }
  set("text_column", -2).set("label_column", -3);
  EXPECT_EQ(text(*load_data(data_, 0).train, 1), "peace");
  set("text_column", Config::list({Config(1), Config(2)})).set("label_column", 0);
  EXPECT_EQ(text(*load_data(data_, 0).train, 2), "chips [SEP] a new chip [SEP]");
}

TEST_F(LabelledTextForms, ColumnsWithoutAHeaderAreNumbers) {
  set("train", folder_.write("train.csv", kNews)).set("header", false);
  set("text_column", 3);
  set("label_column", 0);
  EXPECT_THAT(error(), HasSubstr("train.csv: no column 3; the first line has 3 columns"));
  set("text_column", -3);
  EXPECT_THAT(error(), HasSubstr("one of 3 columns is given as the label and a sentence"));
  set("text_column", "text");
  EXPECT_THAT(config_error(), HasSubstr("text_column: expected the number of a column from 0"));
  set("header", true).set("text_column", 2);
  EXPECT_THAT(error(), HasSubstr("if the first line is an example, set data.header: false"));
  set("header", false).set("train", folder_.write("none.csv", "\n"));
  EXPECT_THAT(error(), HasSubstr("none.csv: there are no sentences in the file"));
}

TEST_F(LabelledTextForms, LinesOfFastText) {
  set("train",
      folder_.write("train.txt", "__label__2 a\tb\n__label__sci-tech a b\n__label__1 c\n"));
  const auto train = load_data(data_, 0).train;
  EXPECT_THAT(train->class_names(), ElementsAre("1", "2", "sci-tech"));
  EXPECT_THAT(labels(*train), ElementsAre(1, 2, 0));
  EXPECT_EQ(text(*train, 0), "a b");
  set("train", folder_.write("two.txt", "__label__a b\n__label__a __label__b c\n"));
  EXPECT_THAT(error(), HasSubstr("two.txt:2: the sentence has more than one label"));
  set("train", folder_.write("none.txt", "__label__a b\n__label__ c\n"));
  EXPECT_THAT(error(), HasSubstr("none.txt:2: expected the name of a class"));
}

TEST_F(LabelledTextForms, NamesOfNumbers) {
  set("train", folder_.write("train.txt", "1 a\n0 b\ngood\tc\n1 d\n"));
  set("class_names", Config::from_value(std::vector<std::string>{"bad", "good", "neither"}));
  const auto train = load_data(data_, 0).train;
  EXPECT_THAT(labels(*train), ElementsAre(1, 0, 1, 1));
  EXPECT_EQ(train->num_classes(), 3);
  set("train", folder_.write("train.txt", "1 a\n3 b\n"));
  EXPECT_THAT(error(), HasSubstr("train.txt:2: expected one of the classes"));
  set("class_names", Config::from_value(std::vector<std::string>{"1", "0"}));
  EXPECT_THAT(config_error(), HasSubstr("class_names: '0' names two classes"));
  set("class_names", Config::from_value(std::vector<std::string>{"bad"}));
  EXPECT_THAT(config_error(), HasSubstr("classification needs two classes"));
}

TEST_F(LabelledTextForms, TestExamplesHeldOutByANumber) {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += std::to_string(i % 2) + " w" + std::to_string(i) + "\n";
  set("train", folder_.write("train.txt", lines)).set("validation", 0.1);
  set("test", 0.25);
  const DataSplits splits = load_data(data_, 3);
  EXPECT_EQ(splits.train->size(), 26);
  EXPECT_EQ(splits.validation->size(), 4);
  EXPECT_EQ(splits.test->size(), 10);
  std::vector<std::string> seen;
  for (const auto& split : {splits.train, splits.validation, splits.test}) {
    for (int64_t i = 0; i < split->size(); ++i) seen.push_back(text(*split, i));
  }
  std::ranges::sort(seen);
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(seen.size(), 40u);
  // The validation split is the same without a test split.
  data_.erase("test");
  EXPECT_EQ(text(*load_data(data_, 3).validation, 0), text(*splits.validation, 0));
  set("test", 37);
  EXPECT_THAT(config_error(), HasSubstr("test: this and data.validation hold out 41 of 40"));
  set("test", 1.5);
  EXPECT_THAT(config_error(), HasSubstr("a count (0, 1, 2, …) or a fraction between 0 and 1"));
}

}  // namespace
}  // namespace lacuna::labelled_text_forms_test
