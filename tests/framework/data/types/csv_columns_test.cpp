// Columns of tables that are more than numbers: categories, dates, missing values, and those that
// are left out.
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/formats/csv_fields.hpp"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/data/types/csv.h"

namespace lacuna::csv_columns_test {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<float>& inputs(const Examples& examples) { return std::get<1>(examples.inputs); }

class CsvColumnForms : public ::testing::Test {
 protected:
  CsvColumnForms() {
    if (!dataset_registry().contains("glyphs")) register_datasets(dataset_registry());
    data_.set("type", "csv");
  }
  Config& set(const std::string& key, const Config& value) {
    data_.set(key, value);
    return data_;
  }
  static Config list(const std::vector<std::string>& names) { return Config::from_value(names); }
  void table(const std::string& text) { set("train", folder_.write("t.csv", text)); }
  DataSplits load() { return load_data(data_, 0); }
  std::vector<float> train_inputs() { return values(*load().train); }
  static std::vector<float> values(const Dataset& dataset) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < dataset.size(); ++i) all.push_back(i);
    return dataset.gather(all).inputs.to_vector();
  }
  std::string error() {
    return message_of<DataError>([&] { load(); });
  }
  std::string config_error() {
    return message_of<ConfigError>([&] { load(); });
  }
  // What predict would read of a file.
  Examples to_predict(const std::string& text, const DataSplits& splits) {
    const KnownData known{.num_classes = splits.train->num_classes(),
                          .class_names = splits.train->class_names(),
                          .columns = splits.columns,
                          .label_column = splits.label_column,
                          .example_shape = splits.train->example_shape(),
                          .categories = splits.categories,
                          .fill = splits.fill};
    return *csv_dataset().read_inputs(folder_.write("new.csv", text), data_, known);
  }

  TemporaryFolder folder_;
  Config data_;
};

TEST_F(CsvColumnForms, CategoriesAreFeaturesOfTheirOwn) {
  table("a,colour,b,y\n1,red,5,0\n2,blue,6,1\n3, red ,7,0\n4,\"green, \"\"x\"\"\",8,1\n");
  set("categories", list({"colour"}));
  const DataSplits splits = load();
  EXPECT_EQ(splits.train->example_shape(), (Shape{5}));
  EXPECT_THAT(values(*splits.train), ElementsAre(1, 0, 0, 1, 5,  //
                                                 2, 1, 0, 0, 6,  //
                                                 3, 0, 0, 1, 7,  //
                                                 4, 0, 1, 0, 8));
  EXPECT_THAT(splits.categories.at("colour"), ElementsAre("blue", "green, \"x\"", "red"));
  EXPECT_THAT(splits.columns, ElementsAre("a", "colour", "b"));
  // By name, wherever the column stands, and with the answers or without.
  const Examples moved = to_predict("b,colour,a\n5,red,1\n6,blue,2\n", splits);
  EXPECT_THAT(inputs(moved), ElementsAre(1, 0, 0, 1, 5, 2, 1, 0, 0, 6));
}

TEST_F(CsvColumnForms, CategoriesThatTrainingDoesNotHaveAreNone) {
  table("a,c,y\n1,x,0\n2,y,1\n");
  set("categories", list({"c"})).set("test", folder_.write("test.csv", "a,c,y\n1,z,0\n2,y,1\n"));
  const DataSplits splits = load();
  EXPECT_THAT(values(*splits.test), ElementsAre(1, 0, 0, 2, 0, 1));
  EXPECT_THAT(inputs(to_predict("a,c\n1,z\n2,x\n", splits)), ElementsAre(1, 0, 0, 2, 1, 0));
  EXPECT_THAT(
      message_of<DataError>([&] { to_predict("a,c\n1,X\n2,Y\n", splits); }),
      HasSubstr("new.csv: column 'c': none of its values is a category of the training data "
                "(x, y), as 'X'"));
  set("test", folder_.write("gap.csv", "a,c,y\n1,,0\n"));
  EXPECT_THAT(error(), HasSubstr("gap.csv:2:3: field 'c': expected the name of a category"));
}

TEST_F(CsvColumnForms, ColumnsOfTextAreNamedWhereNothingSaysWhatTheyAre) {
  table("a,colour,when,n,y\n1,red,2024-03-01,2,0\n");
  EXPECT_THAT(error(),
              HasSubstr("t.csv:2:3: field 'colour': expected a number, found 'red'; inputs "
                        "are numbers: data.categories: [colour] takes names, data.dates: "
                        "[when] takes dates, data.drop_columns leaves columns out"));
  set("categories", list({"colour"}));
  EXPECT_THAT(error(),
              HasSubstr("found '2024-03-01'; inputs are numbers: data.dates: [when] takes"));
  std::string own = "id,a,y\n";
  for (int i = 0; i < 25; ++i)
    own += "n" + std::to_string(i) + ",1," + std::to_string(i % 2) + "\n";
  table(own);
  set("categories", list({"id"}));
  EXPECT_THAT(error(),
              HasSubstr("t.csv: column 'id': each of the 25 rows has a category of its own"));
}

TEST_F(CsvColumnForms, ColumnsAreLeftOut) {
  table("id,a,name,y\n7,1,Ann,0\n8,2,Bob,1\n");
  set("drop_columns", list({"id", "name"}));
  const DataSplits splits = load();
  EXPECT_THAT(values(*splits.train), ElementsAre(1, 2));
  EXPECT_THAT(splits.columns, ElementsAre("a"));
  EXPECT_THAT(inputs(to_predict("id,a,name\n7,3,Cy\n", splits)), ElementsAre(3));
  EXPECT_THAT(inputs(to_predict("a\n4\n", splits)), ElementsAre(4));
  set("drop_columns", list({"ids"}));
  EXPECT_THAT(error(), HasSubstr("t.csv: no column 'ids'; did you mean 'id'?"));
  set("drop_columns", list({"y"}));
  EXPECT_THAT(error(), HasSubstr("the column 'y' is named by both label_column and drop_columns"));
  set("drop_columns", list({"id", "a", "name"}));
  EXPECT_THAT(error(), HasSubstr("t.csv: no column is left as an input"));
}

// Numbers are those of the training file's columns: another file has them at other places.
TEST_F(CsvColumnForms, NumbersGiveWayToNames) {
  table("id,when,x,y\n7,1970-01-02,5,0\n8,1970-01-03,6,1\n");
  set("drop_columns", list({"0"}));
  set("dates", Config::map({{"-3", Config::from_value(std::string("%Y-%m-%d"))}}));
  const DataSplits splits = load();
  EXPECT_THAT(values(*splits.train), ElementsAre(1, 5, 2, 6));
  EXPECT_EQ(data_.peek("drop_columns.0").text(), "id");
  EXPECT_EQ(data_.peek("dates.when").text(), "%Y-%m-%d");
  EXPECT_THAT(inputs(to_predict("x,when\n9,1970-01-05\n", splits)), ElementsAre(4, 9));
}

TEST_F(CsvColumnForms, ColumnsWhoseNamesAreNumbersAreFoundByThem) {
  table("2,0,1,y\n20,21,22,0\n30,31,32,1\n");
  set("drop_columns", list({"0"}));
  const DataSplits splits = load();
  EXPECT_THAT(values(*splits.train), ElementsAre(20, 22, 30, 32));
  EXPECT_THAT(splits.columns, ElementsAre("2", "1"));
}

TEST_F(CsvColumnForms, MissingValuesAreFilledInFromTheTrainingSplitAlone) {
  std::string rows = "a,b,y\n";
  for (int i = 0; i < 20; ++i) rows += std::to_string(i * i) + ",1," + std::to_string(i % 2) + "\n";
  rows += "NA,1,0\n,2,1\n?,3,0\nNaN,4,1\n";
  table(rows);
  EXPECT_THAT(error(),
              HasSubstr("t.csv:22:1: field 'a': expected a number, found 'NA'; a value that "
                        "is missing is filled in by data.missing: mean or median"));
  for (const char* how : {"mean", "median"}) {
    set("missing", how).set("validation", 6);
    const DataSplits splits = load();
    std::vector<float> there;  // of the training split: what is not filled in
    const float filled = static_cast<float>(splits.fill[0]);
    const std::vector<float> all = values(*splits.train);
    int missing = 0;
    for (size_t i = 0; i < all.size(); i += 2) {
      if (all[i] == filled) ++missing;
      if (all[i] != filled) there.push_back(all[i]);
    }
    EXPECT_GT(missing, 0);
    std::ranges::sort(there);
    double mean = 0.0;
    for (const float value : there) mean += value / static_cast<double>(there.size());
    const size_t half = there.size() / 2;
    const double median =
        there.size() % 2 == 1 ? there[half] : 0.5 * (there[half - 1] + there[half]);
    EXPECT_NEAR(splits.fill[0], how == std::string("mean") ? mean : median, 1e-4);
    for (const float value : values(*splits.validation)) EXPECT_FALSE(std::isnan(value));
    EXPECT_THAT(inputs(to_predict("a,b\nnull,3\n", splits)), ElementsAre(filled, 3));
    // The validation examples do not count: with other values in them the numbers are the same.
    EXPECT_EQ(splits.fill.size(), 2u);
  }
}

TEST_F(CsvColumnForms, MissingValuesMayBeGiven) {
  table("a,b,y\n1,,0\n,2,1\n");
  set("missing", -1);
  EXPECT_THAT(train_inputs(), ElementsAre(1, -1, -1, 2));
  set("missing", Config::from_value(std::vector<double>{7, 0.5}));
  EXPECT_THAT(train_inputs(), ElementsAre(1, 0.5, 7, 2));
  set("missing", Config::from_value(std::vector<double>{7, 1, 2}));
  EXPECT_THAT(config_error(), HasSubstr("missing: expected a finite number, or one for each of"));
  set("missing", "most");
  EXPECT_THAT(config_error(), HasSubstr("missing: expected error, mean, median, or a number"));
  table("a,b,y\n1,,0\n2,,1\n");
  set("missing", "mean");
  EXPECT_THAT(error(), HasSubstr("the column 'b' has no value in any training example"));
  table("a,y\n1,\n2,1\n");
  EXPECT_THAT(error(), HasSubstr("field 'y': expected the name of a class, found ''"));
}

TEST_F(CsvColumnForms, DatesAreDays) {
  table("when,y\n1970-01-02,0\n2000-03-01T12:00:00Z,1\n1969-12-31 18:00,0\n");
  set("dates", list({"when"}));
  EXPECT_THAT(train_inputs(), ElementsAre(1, 11017.5, -0.25));
  table("when,y\n3/14/2024,0\n12/1/2023,1\n");
  EXPECT_THAT(error(), HasSubstr("t.csv:2:1: field 'when': expected a date such as 2024-03-01"));
  set("dates", Config::map({{"when", "%m/%d/%Y"}}));
  EXPECT_THAT(train_inputs(), ElementsAre(19796, 19692));
  set("dates", Config::map({{"when", "%m/%d"}}));
  EXPECT_THAT(config_error(), HasSubstr("expected a format of %Y or %y"));
}

TEST(CsvFields, DatesAreReadAsTheyAreWritten) {
  EXPECT_EQ(parse_date("1970-01-01"), 0.0);
  EXPECT_EQ(parse_date(" 1970-01-01T06:00 "), 0.25);
  EXPECT_EQ(parse_date("1970-01-01T06:00:00+06:00"), 0.0);
  EXPECT_EQ(parse_date("1970-01-01T06:00:00-0600"), 0.5);
  EXPECT_NEAR(*parse_date("1970-01-01 00:00:43.2"), 0.0005, 1e-12);
  EXPECT_EQ(parse_date("29.02.72", "%d.%m.%y"), 789.0);
  EXPECT_EQ(parse_date("1 Mar 1970 12:00", "%d %b %Y %H:%M"), 59.5);
  EXPECT_EQ(parse_date("720229", "%y%m%d"), 789.0);
  EXPECT_EQ(parse_date("19720229", "%Y%m%d"), 789.0);
  for (const char* bad : {"", "1970", "1970-13-01", "2023-02-29", "1970-01-01T", "1970-01-01T24:00",
                          "1970-01-01T06", "1970-1-1", "1970-01-01x", "-970-01-01",
                          "1970-01-01T06:00:00.", "1970-01-01T06:00:00+", "1970-01-01T06:00+6"}) {
    EXPECT_FALSE(parse_date(bad)) << bad;
  }
  EXPECT_FALSE(parse_date("31.02.1970", "%d.%m.%Y"));
  EXPECT_FALSE(parse_date("01.02.1970x", "%d.%m.%Y"));
}

TEST_F(CsvColumnForms, WithoutAHeaderColumnsAreNumbers) {
  table("7,red,1,0\n8,blue,2,1\n");
  set("header", false).set("drop_columns", Config::list({Config(0)}));
  set("categories", Config::list({Config(-3)}));
  const DataSplits splits = load();
  EXPECT_THAT(values(*splits.train), ElementsAre(0, 1, 1, 1, 0, 2));
  EXPECT_THAT(splits.categories.at("1"), ElementsAre("blue", "red"));
  // All columns, as in training, or the inputs alone.
  const Examples whole = to_predict("9,blue,3,1\n", splits);
  EXPECT_THAT(inputs(whole), ElementsAre(1, 0, 3));
  EXPECT_THAT(whole.labels, ElementsAre(1));
  const Examples alone = to_predict("blue,3\n", splits);
  EXPECT_THAT(inputs(alone), ElementsAre(1, 0, 3));
  EXPECT_THAT(alone.labels, IsEmpty());
  EXPECT_THAT(message_of<DataError>([&] { to_predict("1,2,3\n", splits); }),
              HasSubstr("the first line has 3 fields; expected 2, as the inputs are, or 4"));
  set("categories", list({"colour"}));
  EXPECT_THAT(config_error(), HasSubstr("the number of a column, since there is no header"));
}

TEST_F(CsvColumnForms, SplitsAreHeldOutOrInFiles) {
  std::string rows = "a,y\n";
  for (int i = 0; i < 50; ++i) rows += std::to_string(i) + "," + std::to_string(i % 2) + "\n";
  table(rows);
  set("validation", 0.2).set("test", 0.1);
  const DataSplits splits = load();
  EXPECT_EQ(splits.validation->size(), 10);
  EXPECT_EQ(splits.test->size(), 5);
  EXPECT_EQ(splits.train->size(), 35);
  set("validation", folder_.write("v.csv", "a,y\n1,0\n"));
  EXPECT_EQ(load().validation->size(), 1);
  EXPECT_EQ(load().train->size(), 45);
  set("validation", folder_.write("v.csv", "b,y\n1,0\n"));
  EXPECT_THAT(error(), HasSubstr("v.csv: expected the columns of"));
}

}  // namespace
}  // namespace lacuna::csv_columns_test
