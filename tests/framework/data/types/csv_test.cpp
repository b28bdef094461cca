#include "lacuna/framework/data/types/csv.h"
#include "lacuna/framework/data/formats/csv_records.hpp"

#include <gmock/gmock.h>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::csv_test {
namespace {

using test::message_of;
using test::write_gzip;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<float>& inputs(const CsvTable& table) {
  return std::get<1>(table.examples.inputs);
}

// The table of a file with this text, or the message of the error without the file's folder.
CsvTable read(const std::string& text, const CsvOptions& options = {}) {
  const TemporaryFolder folder;
  return read_csv(folder.write("t.csv", text), options);
}
std::string error_of(const std::string& text, const CsvOptions& options = {}) {
  const std::string message = message_of<DataError>([&] { read(text, options); });
  return message.substr(std::min(message.find("t.csv"), message.size()));
}

TEST(Csv, ReadsATableWithTheLabelLast) {
  const CsvTable table = read("a,b,label\n1,2,0\n-3.5,4e2,2\n");
  EXPECT_THAT(table.columns, ElementsAre("a", "b", "label"));
  EXPECT_EQ(table.examples.example_shape, (Shape{2}));
  EXPECT_THAT(inputs(table), ElementsAre(1, 2, -3.5, 400));
  EXPECT_THAT(table.examples.labels, ElementsAre(0, 2));
  EXPECT_EQ(table.examples.num_classes, 3);
}

TEST(Csv, AcceptsWhatFilesComeWith) {
  // Byte order mark, CRLF, no newline at the end, blank lines at the end, spaces, a plus sign.
  for (const char* text :
       {"\xEF\xBB\xBF"
        "a,y\r\n1,0\r\n2,1\r\n",
        "a,y\n1,0\n2,1", "a,y\r\n1,0\r\n2,1\r", "a,y\n1,0\n2,1\n\n\r\n", "a,y\n 1 , 0\n+2,\t1.0\n",
        "\"a\",\"y\"\r\n\"1\",\"0\"\r\n\"2\",\"1\"\r\n"}) {
    const CsvTable table = read(text);
    EXPECT_THAT(table.columns, ElementsAre("a", "y")) << text;
    EXPECT_THAT(inputs(table), ElementsAre(1, 2)) << text;
    EXPECT_THAT(table.examples.labels, ElementsAre(0, 1)) << text;
  }
}

TEST(Csv, QuotedNamesMayHoldDelimitersQuotesAndNewlines) {
  const CsvTable table = read("\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\"\n1,2,0\n");
  EXPECT_THAT(table.columns, ElementsAre("a,b", "say \"hi\"", "two\nlines"));
}

TEST(Csv, FindsTheLabelByNameOrIndex) {
  const std::string text = "a,y,b\n1,0,2\n";
  for (const CsvOptions& options : {CsvOptions{.label_column = "y"}, CsvOptions{.label_column = 1},
                                    CsvOptions{.label_column = -2}}) {
    EXPECT_THAT(inputs(read(text, options)), ElementsAre(1, 2));
  }
}

TEST(Csv, ReadsWithoutHeaderAndWithAnotherDelimiter) {
  const CsvTable table = read("1;2;0\n", {.delimiter = ';', .header = CsvHeader::Absent});
  EXPECT_THAT(table.columns, ElementsAre("0", "1", "2"));
  EXPECT_THAT(inputs(table), ElementsAre(1, 2));
}

TEST(Csv, ReadsTargetsAndBareInputs) {
  const CsvTable values = read("a,y\n1,0.5\n2,-7\n", {.task = Task::Regression});
  EXPECT_THAT(values.examples.targets, ElementsAre(0.5, -7));
  EXPECT_EQ(values.examples.num_outputs, 1);
  EXPECT_EQ(values.examples.num_classes, 0);
  const CsvTable bare = read("a,y\n1,0.5\n", {.task = Task::None});
  EXPECT_EQ(bare.examples.example_shape, (Shape{2}));
  EXPECT_THAT(inputs(bare), ElementsAre(1, 0.5));
}

TEST(Csv, ReadsGzippedFiles) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_csv(write_gzip(folder / "t.csv.gz", "a,y\n1,0\n"), {}).examples.size(), 1);
}

// What may be done about a name among the inputs.
const std::string kNames =
    "; inputs are numbers: data.categories: [b] takes names, data.drop_columns leaves columns out";

TEST(Csv, ReadsNumbersThatAreTooSmallAsZero) {
  const CsvTable table = read_csv_text("t.csv", "a,b,y\n1e-400,-1e-60,1\n", {});
  EXPECT_THAT(std::get<1>(table.examples.inputs), ElementsAre(0.0f, 0.0f));
}

TEST(Csv, RefusesWhatIsNotAFiniteNumber) {
  EXPECT_EQ(error_of("a,b,y\n1,2,0\n3,four,1\n"),
            "t.csv:3:3: field 'b': expected a number, found 'four'" + kNames);
  EXPECT_EQ(error_of("a,y\n1.5x,0\n"), "t.csv:2:1: field 'a': expected a number, found '1.5x'");
  EXPECT_EQ(error_of("a,y\n,0\n"),
            "t.csv:2:1: field 'a': expected a number, found ''; a value that is missing is "
            "filled in by data.missing: mean or median");
  for (const std::string bad : {"-inf", "1e39", "1e400"}) {
    EXPECT_EQ(error_of("a,y\n" + bad + ",0\n"),
              "t.csv:2:1: field 'a': expected a finite number that float32 can hold, found '" +
                  bad + "'");
  }
  EXPECT_EQ(error_of("a,y\n1,inf\n", {.task = Task::Regression}),
            "t.csv:2:3: field 'y': expected a finite number that float32 can hold, found 'inf'");
}

TEST(Csv, SaysThatTheFirstLineMayBeNames) {
  EXPECT_EQ(error_of("a,y\n1,0\n", {.header = CsvHeader::Absent}),
            "t.csv:1:1: field '0': expected a number, found 'a'; a table with `header: false` has "
            "no line of names: remove it, or, in training, set header: true");
}

TEST(Csv, SaysOfOtherFilesThatTheyAreNoTables) {
  EXPECT_EQ(error_of(std::string("\0\0\x08\x03\0\n1,0\n", 10)),
            "t.csv: its first line contains zero bytes; expected a table of UTF-8 text");
}

TEST(Csv, CountsLinesWithinQuotes) {
  EXPECT_EQ(error_of("\"a\nb\",y\n1,0\nx,0\n"),
            "t.csv:4:1: field 'a\nb': expected a number, found 'x'; inputs are numbers: "
            "data.categories: [a\\x0ab] takes names, data.drop_columns leaves columns out");
}

TEST(Csv, RefusesAnotherNumberOfFields) {
  EXPECT_EQ(error_of("a,b,y\n1,2,0\n1,2\n"), "t.csv:3:1: expected 3 fields, found 2");
  EXPECT_EQ(error_of("a,b,y\n1,2,3,0\n"), "t.csv:2:1: expected 3 fields, found 4");
  EXPECT_EQ(error_of("a,y\n1,0\n\n2,1\n"), "t.csv:3:1: the line is empty; expected 2 fields");
  EXPECT_EQ(error_of("a,y\r1,0\r2,1\r"),
            "t.csv: no examples after the header; its lines end only in carriage returns; expected "
            "line feeds");
}

TEST(Csv, RefusesLabelsThatAreNoClasses) {
  for (const std::string bad : {"-1", "1.5", "cat", "3", "nan"}) {
    EXPECT_EQ(error_of("a,y\n1," + bad + "\n", {.num_classes = 3}),
              "t.csv:2:3: field 'y': expected a label, which is an integer from 0 to 2, found '" +
                  bad + "'");
  }
  EXPECT_THAT(error_of("a,y\n1,3000000000\n"), HasSubstr("an integer from 0 to 1048575"));
}

// What is a number and no label is a target, most likely.
TEST(Csv, HintsAtRegressionWhereLabelsAreNumbers) {
  const std::string hint = "; if the targets are numbers, not classes, set data.task: regression";
  for (const std::string number : {"0.25", "-3", "1e7"}) {
    EXPECT_EQ(error_of("a,y\n1,0\n1," + number + "\n"),
              "t.csv:3:3: field 'y': expected a label, which is an integer from 0 to 1048575, "
              "found '" +
                  number + "'" + hint);
  }
  for (const std::string other : {"cat", "nan"}) {
    EXPECT_THAT(error_of("a,y\n1,0\n1," + other + "\n"), Not(HasSubstr("regression")));
  }
}

TEST(Csv, RefusesALabelColumnThatIsNotThere) {
  EXPECT_EQ(error_of("a,label\n1,0\n", {.label_column = "lable"}),
            "t.csv: no column 'lable'; did you mean 'label'?");
  EXPECT_EQ(error_of("a,label\n1,0\n", {.label_column = 2}),
            "t.csv: no column 2; the file has 2 columns");
  EXPECT_THAT(error_of("a;label\n1;0\n"),
              HasSubstr("the label's column is the only one; expected at least one input column"));
}

TEST(Csv, RefusesFilesWithoutExamples) {
  EXPECT_EQ(error_of(""), "t.csv: the file is empty");
  EXPECT_EQ(error_of("\n\n"), "t.csv: the file is empty");
  EXPECT_EQ(error_of("a,y\n"), "t.csv: no examples after the header");
  EXPECT_THAT(message_of<DataError>([] { read_csv("no/such.csv", {}); }),
              HasSubstr("no/such.csv: cannot be opened: No such file"));
}

TEST(Csv, RefusesBrokenQuotes) {
  EXPECT_EQ(error_of("a,y\n\"1,0\n2,1\n"), "t.csv:2:1: a quote is opened here and never closed");
  EXPECT_EQ(error_of("a,y\n\"1\"2,0\n"),
            "t.csv:2:1: expected a delimiter or the end of the line after the closing quote");
}

TEST(Csv, NumbersClassesByTheirNames) {
  const CsvTable table = read("a,y\n1,dog\n2,cat\n3,\"a \"\"b\"\"\"\n4,cat\n");
  EXPECT_THAT(table.examples.class_names, ElementsAre("a \"b\"", "cat", "dog"));
  EXPECT_THAT(table.examples.labels, ElementsAre(2, 1, 0, 1));
  EXPECT_EQ(table.examples.num_classes, 3);
  EXPECT_THAT(error_of("a,y\n1,0\n2,cat\n"), HasSubstr("expected a label, which is an integer"));
  EXPECT_THAT(error_of("a,y\n1,cat\n2,\n"),
              HasSubstr("t.csv:3:3: field 'y': expected the name of"));
  EXPECT_THAT(error_of("a,y\n1,cat\xFF\n"), HasSubstr("which is text in UTF-8, found 'cat\\xff'"));
}

TEST(Csv, ShowsFieldsThatAreNoText) {
  EXPECT_EQ(error_of(std::string("a,y\n1\0002,0\n", 10)),
            "t.csv:2:1: field 'a': expected a number, found '1\\x002'");
}

TEST(Csv, RefusesColumnsOfOneName) {
  EXPECT_EQ(error_of("a,b,a,y\n1,2,3,0\n"), "t.csv: columns 1 and 3 have the same name, 'a'");
  EXPECT_THAT(error_of("a\xFF,y\n1,0\n"), HasSubstr("the name of column 1, 'a\\xff', is not text"));
}

TEST(Csv, RefusesLinesOfTooManyFields) {
  EXPECT_EQ(error_of(std::string(kMostCsvFields, ',') + "\n"),
            "t.csv:1:1: the line has more than 524288 fields");
}

TEST(LoadCsv, ReadsBothSplitsWithTheClassesOfTheTrainingLabels) {
  const TemporaryFolder folder;
  Config data = Config::map({{"type", "csv"},
                             {"train", folder.write("train.csv", "a,y\n1,0\n2,4\n")},
                             {"test", folder.write("test.csv", "a,y\n5,1\n")}});
  const DataSplits splits = load_csv(data, 0);
  EXPECT_EQ(splits.train->size(), 2);
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_EQ(splits.test->num_classes(), 5);
  data.erase("test");
  EXPECT_EQ(load_csv(data, 0).test, nullptr);
}

TEST(LoadCsv, RefusesATestFileThatDoesNotMatch) {
  const TemporaryFolder folder;
  const std::string train = folder.write("train.csv", "a,y\n1,0\n2,1\n");
  const auto message = [&](const std::string& test) {
    const Config data =
        Config::map({{"type", "csv"}, {"train", train}, {"test", folder.write("test.csv", test)}});
    return message_of<DataError>([&] { load_csv(data, 0); });
  };
  EXPECT_THAT(message("a,y\n1,2\n"), EndsWith("test.csv:2:3: field 'y': expected a label, which is "
                                              "an integer from 0 to 1, found '2'"));
  EXPECT_THAT(message("b,y\n1,0\n"),
              EndsWith("test.csv: expected the columns of " + train + " (a, y), found b, y"));
  // Which is told before a text in the place of a number.
  EXPECT_THAT(message("y,a\n1,one\n"), EndsWith(" (a, y), found y, a"));
}

// Of many columns nobody sees which one it is.
TEST(LoadCsv, NamesTheColumnsInWhichATestFileDiffers) {
  const TemporaryFolder folder;
  const std::string train =
      folder.write("train.csv", "a,b,c,d,e,f,y\n1,2,3,4,5,6,0\n1,2,3,4,5,6,1\n");
  const auto message = [&](const std::string& test) {
    const Config data =
        Config::map({{"type", "csv"}, {"train", train}, {"test", folder.write("test.csv", test)}});
    return message_of<DataError>([&] { load_csv(data, 0); });
  };
  EXPECT_THAT(message("a,b,d,e,f,y\n1,2,3,4,5,0\n"),
              EndsWith("found a, b, d, e, f, y; missing: c"));
  EXPECT_THAT(message("a,b,see,d,e,f,g,y\n1,2,3,4,5,6,7,0\n"),
              EndsWith("; missing: c; not known: see, g"));
  EXPECT_THAT(message("a,c,b,d,e,f,y\n1,2,3,4,5,6,0\n"),
              EndsWith("; these are the same in another order: 'c' where 'b' is expected; bring "
                       "them into that order"));
}

TEST(LoadCsv, RefusesOptionsThatCannotBeMeant) {
  const TemporaryFolder folder;
  const std::string train = folder.write("train.csv", "a,y\n1,0\n2,1\n");
  const auto message = [&](const char* key, const Config& value) {
    const Config data = Config::map({{"type", "csv"}, {"train", train}, {key, value}});
    return message_of<ConfigError>([&] { load_csv(data, 0); });
  };
  EXPECT_THAT(message("delimiter", "ab"),
              HasSubstr("delimiter: expected one character that cannot be part of a number"));
  EXPECT_THAT(message("delimiter", "."), HasSubstr("expected one character"));
  EXPECT_THAT(message("task", "clasification"),
              HasSubstr("task: expected classification or regression, found 'clasification'"));
  EXPECT_THAT(message("num_classes", 1), HasSubstr("num_classes: expected an integer from 2 to"));
  EXPECT_THAT(message("header", "maybe"), HasSubstr("header: expected true or false"));
  EXPECT_THAT(message("train", Config()), HasSubstr("train: a required key is missing"));

  const Config headless =
      Config::map({{"type", "csv"}, {"train", train}, {"header", false}, {"label_column", "y"}});
  EXPECT_THAT(message_of<ConfigError>([&] { load_csv(headless, 0); }),
              HasSubstr("label_column: expected an index, since there is no header"));
}

}  // namespace
}  // namespace lacuna::csv_test
