// Columns held against those of training.
#include "lacuna/framework/train/checks/column_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::column_checks_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const CsvColumns kTrained{.inputs = {"a", "b", "c"}, .label = "kind"};

ColumnDifference compared(std::vector<std::string> inputs, std::string label = "kind") {
  return compare_columns(kTrained, {.inputs = std::move(inputs), .label = std::move(label)});
}

TEST(ColumnChecks, TheSameNamesInTheSameOrderAreGood) {
  EXPECT_THAT(compared({"a", "b", "c"}).moved, IsEmpty());
  EXPECT_THAT(compared({"a", "b", "c"}).renamed, IsEmpty());
  EXPECT_THAT(compared({"a", "b", "c"}, "").renamed, IsEmpty());  // labels may have no name
}

TEST(ColumnChecks, WithoutNamesThereIsNothingToCompare) {
  EXPECT_THAT(compared({}).moved + compared({}).renamed, IsEmpty());
  const auto [moved, renamed] = compare_columns({}, kTrained);
  EXPECT_THAT(moved + renamed, IsEmpty());
}

TEST(ColumnChecks, ANameAtAnotherPlaceIsMoved) {
  for (const std::vector<std::string>& inputs : std::vector<std::vector<std::string>>{
           {"b", "a", "c"}, {"c", "b", "a"}, {"b", "c", "a"}, {"a", "c"}, {"x", "a", "b", "c"}}) {
    EXPECT_THAT(compared(inputs).moved, HasSubstr("expected 'a', 'b', 'c', in this order"))
        << inputs.front();
    EXPECT_THAT(compared(inputs).renamed, IsEmpty());
  }
  EXPECT_THAT(compared({"b", "a", "c"}).moved, HasSubstr("'a' was number 1, and is number 2"));
  EXPECT_THAT(compared({"kind", "a", "b"}, "c").moved, HasSubstr("'a' was number 1"));
  EXPECT_THAT(compared({"a", "b", "kind"}, "c").moved,
              HasSubstr("'c' was number 3, and is the label"));
}

TEST(ColumnChecks, OtherNamesAtTheSamePlacesAreRenamed) {
  EXPECT_THAT(compared({"a", "B", "c"}).moved, IsEmpty());
  EXPECT_THAT(compared({"a", "B", "c"}).renamed,
              HasSubstr("columns 'B', but the model was trained on 'b'"));
  EXPECT_THAT(compared({"a", "b", "c", "d"}).renamed,
              HasSubstr("columns 'd', but the model was trained on (none)"));
  EXPECT_THAT(compared({"a", "b", "c"}, "sort").renamed,
              HasSubstr("label is 'sort', and was 'kind'"));
}

TEST(ColumnChecks, OtherCategoriesAreOtherFeatures) {
  CsvColumns trained = kTrained, found = kTrained;
  trained.categories["b"] = {"blue", "red"};
  EXPECT_THAT(compare_columns(trained, found).moved,
              HasSubstr("the column 'b' has other categories than in training: none; expected "
                        "'blue', 'red'"));
  found.categories["b"] = {"blue", "green"};
  EXPECT_THAT(compare_columns(trained, found).moved, HasSubstr("'blue', 'green'; expected 'blue'"));
  found.categories = trained.categories;
  EXPECT_THAT(compare_columns(trained, found).moved, IsEmpty());
  EXPECT_THAT(compare_columns(trained, {}).moved, IsEmpty());  // no table
  trained.inputs = found.inputs = {};                          // without a header
  found.categories["0"] = {"a", "b"};
  EXPECT_THAT(compare_columns(trained, found).moved, HasSubstr("the column '0'"));
  const CsvColumns again = columns_from_json(to_json(found));
  EXPECT_EQ(again.categories, found.categories);
  EXPECT_EQ(again.inputs, found.inputs);
}

TEST(ColumnChecks, LongListsAreCut) {
  CsvColumns trained, found;
  for (int i = 0; i < 70; ++i) {
    trained.inputs.push_back("c" + std::to_string(i));
    found.inputs.push_back("d" + std::to_string(i));
  }
  EXPECT_THAT(compare_columns(trained, found).renamed, HasSubstr("'d7', and 62 more"));
}

TEST(ColumnChecks, EitherDifferenceIsAnErrorOfTheTable) {
  const auto check = [](std::vector<std::string> inputs) {
    return
        [inputs] { require_same_columns("t.csv", kTrained, {.inputs = inputs, .label = "kind"}); };
  };
  EXPECT_NO_THROW(check({"a", "b", "c"})());
  expect_throws<DataError>(check({"b", "a", "c"}), "t.csv: the columns are in another order");
  expect_throws<DataError>(check({"a", "b", "z"}), "t.csv: the table has the columns 'z'");
}

}  // namespace
}  // namespace lacuna::column_checks_test
