// Each word that stands for a missing value, in each role that a column of a table can have.
#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/data/types/csv.h"

namespace lacuna::missing_words_test {
namespace {

using test::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// Those of docs/guides/data.md, next to empty fields.
const std::vector<std::string> kWords = {"NA",  "N/A",  "#N/A", "<NA>", "NaN",
                                         "NaT", "null", "none", "?"};

std::string cased(std::string word, int (*convert)(int)) {
  for (char& c : word) c = static_cast<char>(convert(static_cast<unsigned char>(c)));
  return word;
}

// Each word in the forms that a file may have it in, and the empty field.
std::vector<std::string> all_forms() {
  std::vector<std::string> forms = {"", " "};
  for (const std::string& word : kWords) {
    for (const std::string& form : {word, cased(word, std::tolower), cased(word, std::toupper)}) {
      if (std::ranges::find(forms, form) == forms.end()) forms.push_back(form);
    }
    forms.push_back(" " + word + "\t");
  }
  return forms;
}

class MissingWords : public ::testing::Test {
 protected:
  MissingWords() {
    if (!dataset_registry().contains("glyphs")) register_datasets(dataset_registry());
  }
  // A `data` section on this table.
  Config data(const std::string& text, const Config& keys = Config::map()) {
    Config section = Config::map(
        {{"type", "csv"}, {"train", folder_.write("t.csv", text)}, {"missing_names", true}});
    for (const auto& [key, value] : keys.entries()) section.set(key, value);
    return section;
  }
  static std::vector<float> values(const Dataset& dataset) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < dataset.size(); ++i) all.push_back(i);
    return dataset.gather(all).inputs.to_vector();
  }
  static std::vector<int64_t> labels(const Dataset& dataset) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < dataset.size(); ++i) {
      all.push_back(dataset.gather(std::vector<int64_t>{i}).labels.values()[0]);
    }
    return all;
  }
  static std::string error(const Config& section) {
    return message_of<DataError>([&] { load_data(section, 0); });
  }
  static Config list(const std::vector<std::string>& names) { return Config::from_value(names); }

  TemporaryFolder folder_;
};

TEST_F(MissingWords, OfInputsAreFilledIn) {
  for (const std::string& word : all_forms()) {
    const std::string table = "a,y\n1,0\n" + word + ",1\n";
    EXPECT_THAT(error(data(table)),
                AllOf(HasSubstr("t.csv:3:1: field 'a': expected"), HasSubstr("data.missing")))
        << word;
    const auto train = load_data(data(table, Config::map({{"missing", 5}})), 0).train;
    EXPECT_THAT(values(*train), ElementsAre(1, 5)) << word;
    // No number can be meant by a word between quotes.
    const std::string quoted = "a,y\n1,0\n\"" + word + "\",1\n";
    const auto same = load_data(data(quoted, Config::map({{"missing", "mean"}})), 0).train;
    EXPECT_THAT(values(*same), ElementsAre(1, 1)) << word;
  }
}

TEST_F(MissingWords, OfDatesAreFilledIn) {
  for (const std::string& word : all_forms()) {
    const std::string table = "a,y\n1970-01-02,0\n" + word + ",1\n";
    Config keys = Config::map({{"dates", list({"a"})}});
    EXPECT_THAT(error(data(table, keys)), HasSubstr("data.missing")) << word;
    keys.set("missing", 5);
    EXPECT_THAT(values(*load_data(data(table, keys), 0).train), ElementsAre(1, 5)) << word;
  }
}

TEST_F(MissingWords, OfCategoriesAreNone) {
  for (const std::string& word : all_forms()) {
    const std::string table = "c,y\nred,0\nblue,1\n" + word + ",0\n";
    Config keys = Config::map({{"categories", list({"c"})}});
    EXPECT_THAT(error(data(table, keys)),
                AllOf(HasSubstr("t.csv:4:1: field 'c': expected the name of a category"),
                      HasSubstr("data.missing")))
        << word;
    keys.set("missing", "mean");
    const DataSplits splits = load_data(data(table, keys), 0);
    EXPECT_THAT(values(*splits.train), ElementsAre(0, 1, 1, 0, 0, 0)) << word;
    EXPECT_THAT(splits.categories.at("c"), ElementsAre("blue", "red")) << word;
  }
}

TEST_F(MissingWords, OfLabelsAndTargetsAreErrors) {
  for (const std::string& word : all_forms()) {
    for (const char* missing : {"error", "mean"}) {
      Config keys = Config::map({{"missing", missing}});
      EXPECT_THAT(error(data("a,y\n1,0\n2,1\n3," + word + "\n", keys)),
                  HasSubstr("t.csv:4:3: field 'y': expected a label"))
          << word;
      EXPECT_THAT(error(data("a,y\n1,cat\n2,dog\n3," + word + "\n", keys)),
                  AllOf(HasSubstr("t.csv:4:3: field 'y': expected the name of a class"),
                        HasSubstr("a label that is missing must be filled in")))
          << word;
      EXPECT_THAT(error(data("a,y\n1," + word + "\n2,cat\n3,dog\n", keys)),
                  HasSubstr("t.csv:2:3: field 'y': expected"))
          << word;
      keys.set("task", "regression");
      EXPECT_THAT(error(data("a,y\n1,0.5\n2," + word + "\n", keys)),
                  HasSubstr("t.csv:3:3: field 'y': expected a"))
          << word;
    }
  }
}

TEST_F(MissingWords, BetweenQuotesAreNames) {
  for (const std::string& word : kWords) {
    const std::string quoted = "\"" + word + "\"";
    for (const std::string& rows :
         {"1,cat\n2," + quoted + "\n3,cat\n", "1," + quoted + "\n2,cat\n3," + quoted + "\n"}) {
      const auto train = load_data(data("a,y\n" + rows), 0).train;
      EXPECT_THAT(train->class_names(), UnorderedElementsAre(word, "cat")) << rows;
    }
    const Config keys = Config::map({{"categories", list({"c"})}});
    const DataSplits splits = load_data(data("c,y\nred,0\n" + quoted + ",1\n", keys), 0);
    EXPECT_THAT(splits.categories.at("c"), UnorderedElementsAre(word, "red"));
  }
  EXPECT_THAT(error(data("a,y\n1,cat\n2,\"\"\n")), HasSubstr("expected the name of a class"));
}

TEST_F(MissingWords, StandBetweenQuotesInAllRowsOrInNone) {
  const Config keys = Config::map({{"categories", list({"c"})}, {"missing", "mean"}});
  for (const char* rows : {"red,0\n\"NA\",1\nNA,1\n", "red,0\nNA,1\n\"NA\",1\n"}) {
    EXPECT_THAT(error(data(std::string("c,y\n") + rows, keys)),
                HasSubstr("t.csv:4:1: field 'c': expected the word between quotes in all rows"));
  }
  EXPECT_THAT(error(data("a,y\n1,cat\n2,\"NA\"\n3,NA\n")),
              AllOf(HasSubstr("t.csv:4:3"), HasSubstr("between quotes: \"NA\"")));
}

// As in the runs of earlier versions, whose classes and categories may be such words.
TEST_F(MissingWords, AreNamesWhereTheNamesAreKnown) {
  for (const std::string& word : kWords) {
    CsvOptions options{.num_classes = 2, .class_names = {"cat", word}};
    const std::string table = "a,y\n1,cat\n2," + word + "\n";
    EXPECT_THAT(read_csv_text("t.csv", table, options).examples.labels, ElementsAre(0, 1));
    options.class_names = {"cat", "dog"};
    EXPECT_THAT(message_of<DataError>([&] { read_csv_text("t.csv", table, options); }),
                HasSubstr("expected the name of a class"));
    options = {.categories = {{"c", {word, "red"}}}};
    const CsvTable read = read_csv_text("t.csv", "c,y\nred,0\n" + word + ",1\n", options);
    EXPECT_THAT(std::get<1>(read.examples.inputs), ElementsAre(0, 1, 1, 0)) << word;
  }
  Config section = data("a,y\n1,cat\n2,\"NA\"\n");
  section.set("test", folder_.write("test.csv", "a,y\n1,NA\n2,cat\n"));
  EXPECT_THAT(labels(*load_data(section, 0).test), ElementsAre(0, 1));
}

class MissingTextLabels : public MissingWords {
 protected:
  Config sentences(const std::string& text) {
    return Config::map({{"type", "labelled_text"},
                        {"train", folder_.write("t.txt", text)},
                        {"missing_names", true}});
  }
  Config table(const std::string& rows) {
    Config section = sentences("text,y\n" + rows);
    section.set("text_column", "text");
    section.set("label_column", "y");
    return section;
  }
};

TEST_F(MissingTextLabels, OfTablesAreErrors) {
  for (const std::string& word : all_forms()) {
    EXPECT_THAT(error(table("a b,good\nc d,bad\ne f," + word + "\n")),
                HasSubstr("t.txt:4: expected the name of a class"))
        << word;
    EXPECT_THAT(error(table("a b,0\nc d,1\ne f," + word + "\n")),
                HasSubstr("t.txt:4: expected a label"))
        << word;
    EXPECT_THAT(error(table("e f," + word + "\na b,good\nc d,bad\n")),
                HasSubstr("t.txt:2: expected"))
        << word;
  }
}

TEST_F(MissingTextLabels, BetweenQuotesAreNames) {
  for (const std::string& word : kWords) {
    for (const std::string& rows :
         {"a b,good\nc d,\"" + word + "\"\n", "a b,\"" + word + "\"\nc d,good\n"}) {
      EXPECT_THAT(load_data(table(rows), 0).train->class_names(),
                  UnorderedElementsAre(word, "good"))
          << rows;
    }
    EXPECT_THAT(error(table("a b,good\nc d,\"" + word + "\"\ne f," + word + "\n")),
                HasSubstr("t.txt:4: expected the name of a class"));
  }
}

TEST_F(MissingTextLabels, OfEarlierVersionsAreNames) {
  for (const std::string& word : kWords) {
    Config earlier = table("a b,good\nc d," + word + "\n");
    earlier.erase("missing_names");
    EXPECT_THAT(load_data(earlier, 0).train->class_names(), UnorderedElementsAre(word, "good"));
    earlier = data("a,c,y\n1,red,good\n2," + word + "," + word + "\n",
                   Config::map({{"categories", list({"c"})}, {"missing_names", false}}));
    const DataSplits splits = load_data(earlier, 0);
    EXPECT_THAT(splits.train->class_names(), UnorderedElementsAre(word, "good"));
    EXPECT_THAT(splits.categories.at("c"), UnorderedElementsAre(word, "red"));
  }
}

// A masked language model reads none of them.
TEST_F(MissingTextLabels, MayBeIgnored) {
  for (const std::string& word : kWords) {
    Config masked = table("a b,good\nc d," + word + "\n");
    masked.set("mask_fraction", 0.5);
    EXPECT_EQ(load_data(masked, 0).train->size(), 2) << word;
  }
}

TEST_F(MissingTextLabels, OfLinesAreErrorsUnlessTheyAreNamed) {
  for (const std::string& word : kWords) {
    Config lines = sentences("good\ta b\n" + word + "\tc d\nbad\te f\n");
    EXPECT_THAT(error(lines), AllOf(HasSubstr("t.txt:2: expected the name of a class"),
                                    HasSubstr("data.class_names")));
    lines.set("class_names", list({"bad", word, "good"}));
    EXPECT_THAT(labels(*load_data(lines, 0).train), ElementsAre(2, 1, 0)) << word;
    const Config fast_text = sentences("__label__good a b\n__label__" + word + " c d\n");
    EXPECT_THAT(load_data(fast_text, 0).train->class_names(), UnorderedElementsAre(word, "good"));
  }
}

}  // namespace
}  // namespace lacuna::missing_words_test
