// Tables of losses: as curves, as files, and as a distribution of nonzeros.
#include "lacuna/sparsity/options/loss_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/sparsity/options/counting.hpp"
#include "lacuna/sparsity/options/distribution.h"
#include "throws.h"

namespace lacuna {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const char* const kTable = R"(
version: 1
loss: 1.0
rows:
  - {parameter: fc1.weight, shape: [10, 20], sparsities: [0.5, 0.9], losses: [0.9, 1.5]}
  - {parameter: fc2.weight, shape: [5, 10], sparsities: [0.5, 0.9], losses: [1.4, 3.0]}
)";

LossTable table() { return LossTable::from_config(parse_yaml(kTable, "table")); }

Distribution measured() {
  Distribution distribution{Distribution::Kind::Measured};
  distribution.take_rows(table(), {"fc1.weight", "fc2.weight"}, {Shape{10, 20}, Shape{5, 10}});
  return distribution;
}

std::string message_of(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  try {
    LossTable::from_config(parse_yaml(text, "table"));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(LossTable, IsACurveThatNeverFallsWithSparsity) {
  const LossTable::Curve curve = table().curve(0);
  EXPECT_THAT(curve.densities, ElementsAre(testing::DoubleNear(0.1, 1e-12), 0.5, 1.0));
  EXPECT_THAT(curve.increases, ElementsAre(0.5, 0.0, 0.0));  // 0.9 − 1.0 is noise
  EXPECT_DOUBLE_EQ(curve.increase_at(0.3), 0.25);
  EXPECT_DOUBLE_EQ(curve.increase_at(0.75), 0.0);
  EXPECT_DOUBLE_EQ(curve.increase_at(0.01), 0.5);
}

TEST(LossTable, IsReadAsItIsWritten) {
  const Config written = parse_yaml(table().to_config().to_json(), "json");
  EXPECT_EQ(LossTable::from_config(written).to_config(), table().to_config());
}

TEST(LossTable, RefusesWhatItCannotUseByItsPlace) {
  EXPECT_THAT(message_of(kTable, "version: 1", "version: 2"),
              HasSubstr("table:2:10: version: this is version 2 of the table, and 1 is read"));
  EXPECT_THAT(message_of(kTable, "1.5]", ".nan]"),
              HasSubstr("table:5:84: rows.0.losses.1: expected a number, found '.nan'"));
  EXPECT_THAT(message_of(kTable, "1.5]", "null]"), HasSubstr("rows.0.losses.1"));
  EXPECT_THAT(message_of(kTable, "loss: 1.0", "loss: .inf"), HasSubstr("table:3:7: loss"));
  EXPECT_THAT(message_of(kTable, ", 1.5]", "]"), HasSubstr("there are 1 losses for 2 sparsities"));
  EXPECT_THAT(message_of(kTable, "[0.5, 0.9]", "[0.9, 0.5]"),
              HasSubstr("rows.0.sparsities.1: expected sparsities in (0, 1), each larger"));
  EXPECT_THAT(message_of(kTable, "fc2.weight", "fc1.weight"),
              HasSubstr("rows.1.parameter: there is another row for it"));
}

TEST(LossTable, RefusesOtherModels) {
  expect_throws<ConfigError>(
      [&] {
        table().of({"fc3.weight"}, {Shape{10, 20}});
      },
      "no row for 'fc3.weight'");
  expect_throws<ConfigError>(
      [&] {
        table().of({"fc1.weight"}, {Shape{20, 10}});
      },
      "of another model: 'fc1.weight' has shape [10, 20] there, and [20, 10]");
}

// fc2 loses 0.016 per nonzero down to ½ and 0.08 below, fc1 nothing down to ½ and 0.00625 below.
// A sparsity of 0.6 leaves 99 of 250 in float32.
TEST(MeasuredDistribution, GivesNonzerosToWhereTheyLowerTheLossMost) {
  const std::vector<Shape> shapes = {Shape{10, 20}, Shape{5, 10}};
  EXPECT_THAT(distribute_nnz(measured(), 0.6f, shapes), ElementsAre(49, 50));
  EXPECT_THAT(distribute_nnz(measured(), 0.5f, shapes), ElementsAre(75, 50));
  EXPECT_THAT(distribute_nnz(measured(), 0.84f, shapes), ElementsAre(20, 20));
  for (const float sparsity : {0.0f, 0.1f, 0.37f, 0.5f, 0.66f, 0.8f, 0.9f}) {
    const std::vector<int64_t> counts = distribute_nnz(measured(), sparsity, shapes);
    EXPECT_EQ(counts[0] + counts[1], target_nnz(sparsity, 250)) << sparsity;
  }
}

TEST(MeasuredDistribution, RefusesMoreThanTheTableHas) {
  expect_throws<ConfigError>(
      [&] {
        distribute_nnz(measured(), 0.95f, {Shape{10, 20}, Shape{5, 10}});
      },
      "is more than the table of losses has: the largest that can be reached is 0.9; measure at "
      "higher `levels`");
}

TEST(MeasuredDistribution, IsUniformBeforeAnythingIsMeasured) {
  const Distribution planned = Distribution::from_config(Config("measured"));
  EXPECT_EQ(planned.levels, LossTable::default_sparsities());
  EXPECT_THAT(distribute_nnz(planned, 0.5f, {Shape{10, 20}, Shape{5, 10}}), ElementsAre(100, 25));
}

TEST(MeasuredDistribution, IsReadWithItsTableOrLevels) {
  const auto read = [](const std::string& text) {
    return Distribution::from_config(parse_yaml(text, "x"));
  };
  EXPECT_THAT(read("{type: measured, levels: [0.5, 0.75]}").levels, ElementsAre(0.5, 0.75));
  EXPECT_EQ(read("{type: erk}").kind, Distribution::Kind::Erk);
  expect_throws<ConfigError>([&] { read("{type: measured, levels: [0.5, 1.0]}"); },
                             "levels: expected sparsities in (0, 1)");
  expect_throws<ConfigError>([&] { read("{type: measured, table: a.json, levels: [0.5]}"); },
                             "leave one of both out");
  expect_throws<ConfigError>([&] { read("{type: mesured}"); }, "unknown distribution 'mesured'");
}

}  // namespace
}  // namespace lacuna
