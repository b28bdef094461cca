// Ticks and thinning: what a chart shows of its numbers.
#include "lacuna/framework/report/chart.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>

#include "lacuna/framework/report/scatter.hpp"

namespace lacuna::chart_test {
namespace {

TEST(RoundTicks, AreMultiplesOfOneTwoOrFive) {
  EXPECT_EQ(round_ticks(0.0, 10.0, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(3.0, 684.0, 8), (std::vector<double>{100, 200, 300, 400, 500, 600}));
  const std::vector<double> small = round_ticks(0.11, 0.34, 6);
  ASSERT_EQ(small.size(), 4u);
  EXPECT_DOUBLE_EQ(small.front(), 0.15);
  EXPECT_DOUBLE_EQ(small.back(), 0.30);
}

// Of what is counted no halves are shown.
TEST(RoundTicks, AreNoNearerThanAsked) {
  EXPECT_EQ(round_ticks(9.0, 10.0, 5, 1.0), (std::vector<double>{9, 10}));
  EXPECT_EQ(round_ticks(0.0, 10.5, 6, 1.0), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(0.5, 1.5, 8, 1.0), (std::vector<double>{1}));
}

TEST(Thinned, KeepsTheFirstAndTheLastPoint) {
  Curve curve;
  for (int i = 0; i < 1000; ++i) curve.add(i, 2 * i);
  const Curve few = thinned(curve, 10);
  ASSERT_EQ(few.steps.size(), 10u);
  EXPECT_EQ(few.steps.front(), 0.0);
  EXPECT_EQ(few.steps.back(), 999.0);
  EXPECT_EQ(few.values.back(), 1998.0);
  EXPECT_EQ(thinned(curve, 1000).steps.size(), 1000u);
}

TEST(Svg, DrawsEveryPointOfACurve) {
  Chart chart{.id = "c", .title = "a < b"};
  Curve curve;
  curve.add(0, 1.0);
  curve.add(50, 2.0);
  curve.add(100, 0.0);
  chart.series.push_back({.label = "s", .curve = curve});
  const std::string svg = svg_of(chart, 560, 270);
  EXPECT_NE(svg.find("aria-label=\"a &lt; b\""), std::string::npos);
  const size_t begin = svg.find("points=\"") + 8;
  const std::string points = svg.substr(begin, svg.find('"', begin) - begin);
  EXPECT_EQ(std::count(points.begin(), points.end(), ','), 3) << points;
  EXPECT_EQ(points.substr(0, 5), "72.0,");  // where the axis begins
  EXPECT_NE(points.find("544.0,228.0"), std::string::npos) << points;
}

TEST(Svg, ShowsAConstantAndASinglePoint) {
  Chart chart{.id = "c", .title = "constant"};
  Curve curve;
  curve.add(5, 0.1);
  chart.series.push_back({.label = "s", .curve = curve});
  EXPECT_EQ(svg_of(chart, 300, 200).find("nan"), std::string::npos);
  curve.add(6, 0.1 + 1e-17);
  chart.series[0].curve = curve;
  EXPECT_EQ(svg_of(chart, 300, 200).find("nan"), std::string::npos);
  // Of counts that are all zero no negative ones are shown.
  Curve zeros;
  zeros.add(5, 0.0);
  zeros.add(6, 0.0);
  chart.series[0].curve = zeros;
  EXPECT_NE(svg_of(chart, 300, 200).find(">1</text>"), std::string::npos);
  EXPECT_EQ(svg_of(chart, 300, 200).find(">-"), std::string::npos);
}

// One row with nine nonzeros, one dead row, and two updates: whole numbers on every axis.
TEST(LayerCharts, CountInWholeNumbers) {
  LayerData layer;
  layer.fan_in = {9};
  layer.fan_in_step = 2;
  for (const double step : {1.0, 2.0}) {
    layer.dropped.add(step, step);
    layer.grown.add(step, 1.0);
    layer.dead_rows.add(step, 1.0);
  }
  const std::vector<Chart> charts = layer_charts(layer, "l");
  ASSERT_EQ(charts.size(), 3u);
  for (const Chart& chart : charts) {
    EXPECT_EQ(to_json(chart).required<std::string>("unit"), "count") << chart.title;
    const std::string svg = svg_of(chart, 380, 230);
    for (size_t at = svg.find("\"tick\""); at != std::string::npos;
         at = svg.find("\"tick\"", at + 1)) {
      const size_t begin = svg.find('>', at) + 1;
      const std::string text = svg.substr(begin, svg.find('<', begin) - begin);
      EXPECT_EQ(text.find('.'), std::string::npos) << chart.title << ": " << text;
    }
  }
}

// Losses and errors that fall by much are told apart on a logarithmic scale alone; R², which comes
// near 1, is not such a one.
TEST(OverviewCharts, ShowWhatFallsOnALogarithmicScale) {
  RunData run{.folder = "a", .name = "a"};
  for (const char* key : {"loss", "r2", "rmse", "mae"}) {
    for (const double value : {0.9, 0.1, 0.01}) {
      Curve& curve = run.splits["validation"][key];
      curve.add(static_cast<double>(curve.steps.size()), value);
    }
  }
  std::string scales;
  for (const Chart& chart : overview_charts({run})) {
    scales += chart.title + (chart.scale == ChartScale::Logarithmic ? " log; " : " linear; ");
  }
  EXPECT_EQ(scales, "Loss log; R² linear; RMSE log; MAE log; ");
}

TEST(Chart, APageDoesNotGrowWithItsRuns) {
  EXPECT_EQ(points_of_a_curve(1), 2000u);
  EXPECT_EQ(points_of_a_curve(4), 2000u);
  EXPECT_EQ(points_of_a_curve(80), 100u);
  EXPECT_EQ(points_of_a_curve(100000), 60u);
  Chart chart{.id = "c", .title = "t"};
  Curve curve;
  for (int i = 0; i < 5000; ++i) curve.add(i, i % 7);
  for (int i = 0; i < 20; ++i) chart.series.push_back({"s", style_of(i), curve});
  const size_t of_twenty = svg_of(chart, 600, 300).size();
  for (int i = 0; i < 40; ++i) chart.series.push_back({"s", style_of(i), curve});
  EXPECT_LT(svg_of(chart, 600, 300).size(), of_twenty * 5 / 4);
  EXPECT_EQ(to_json(chart, 100).at("series").items()[0].at("x").items().size(), 100u);
}

// Eight colours, and eighty runs that look different.
TEST(Chart, TellsEightyRunsApart) {
  std::set<std::string> looks;
  for (int i = 0; i < 80; ++i) looks.insert(style_attributes(style_of(i)));
  EXPECT_EQ(looks.size(), 80u);
  EXPECT_EQ(style_of(7).dash, 0);
  EXPECT_NE(style_of(8).dash, 0);
  EXPECT_EQ(style_of(80).colour, 0);
  // The key shows the same dashes as the curve.
  EXPECT_NE(swatch(style_of(13)).find(style_attributes(style_of(13))), std::string::npos);
}

Curve curve_through(std::vector<double> steps, std::vector<double> values) {
  return {.steps = std::move(steps), .values = std::move(values)};
}

TEST(Band, IsTheMeanAndTheDeviationOfASample) {
  const Curve one = curve_through({0, 10, 20}, {1, 2, 3}), two = curve_through({0, 20}, {3, 5});
  const CurveBand band = band_of({&one, &two});
  EXPECT_EQ(band.mean.steps, (std::vector<double>{0, 10, 20}));
  EXPECT_EQ(band.mean.values, (std::vector<double>{2, 3, 4}));
  ASSERT_EQ(band.spread.size(), 3u);
  for (const double spread : band.spread) EXPECT_NEAR(spread, std::sqrt(2.0), 1e-12);
  // Where one has ended the other goes on alone.
  const Curve shorter = curve_through({0, 10}, {3, 4});
  const CurveBand rest = band_of({&one, &shorter});
  EXPECT_EQ(rest.mean.values, (std::vector<double>{2, 3, 3}));
  EXPECT_EQ(rest.spread.back(), 0.0);
  EXPECT_EQ(band_of({&one}).mean.values, one.values);
}

TEST(OverviewCharts, DrawSeedsAsABand) {
  std::vector<RunData> runs;
  for (const double loss : {1.0, 2.0, 5.0}) {
    RunData& run = runs.emplace_back(RunData{.folder = "a", .name = "a", .label = "a"});
    run.splits["test"]["loss"] = curve_through({0, 10}, {loss, loss / 2});
  }
  const Chart chart = overview_charts(runs, groups_of({"x", "x", "y"}))[0];
  ASSERT_EQ(chart.bands.size(), 2u);
  EXPECT_EQ(chart.bands[0].band.mean.values, (std::vector<double>{1.5, 0.75}));
  EXPECT_EQ(chart.bands[0].runs, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(to_json(chart).at("bands").items()[1].at("label").text(), "y");
  const std::string svg = svg_of(chart, 560, 270);
  EXPECT_NE(svg.find("<polygon class=\"band c0\""), std::string::npos);
  EXPECT_EQ(svg.find("<polygon class=\"band c1\""), std::string::npos);  // of one run
  EXPECT_TRUE(overview_charts(runs, groups_of({"x", "y", "z"}))[0].bands.empty());
  EXPECT_EQ(chart.y_label, "loss");
}

RunResult costing(const std::string& name, double accuracy, double nnz, double seconds) {
  RunResult result{.name = name, .folder = name, .state = "finished"};
  result.label = name;
  result.accuracy = accuracy;
  result.loss = 1.0 - accuracy;
  result.nnz = nnz;
  result.train_seconds = seconds;
  return result;
}

TEST(Scatter, ShowsResultsAgainstTheirCost) {
  const std::vector<RunResult> results = {costing("a", 0.9, 1000, 5), costing("b", 0.8, 10, 5),
                                          costing("running", 0.7, RunResult::kNone, 5)};
  const std::vector<ScatterSet> sets = scatter_sets(results, groups_of({"a", "b", "c"}));
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[0].title, "Accuracy");
  EXPECT_TRUE(sets[0].is_main);
  EXPECT_FALSE(sets[1].is_main);
  ASSERT_EQ(sets[0].charts.size(), 1u);  // all took the same time, nobody knows the memory
  const Chart& chart = sets[0].charts[0];
  EXPECT_EQ(chart.id, "scatter-0-accuracy-nnz");
  EXPECT_EQ(chart.x_scale, ChartScale::Logarithmic);
  ASSERT_EQ(chart.series.size(), 2u);
  const std::string svg = svg_of(chart, 560, 270);
  EXPECT_NE(svg.find("<title>b: accuracy 80 %, nonzeros 10</title>"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

// A language model is judged by its bits, not by how often the next token was right.
TEST(Scatter, BeginsWithWhatRunsAreRankedBy) {
  std::vector<RunResult> results = {costing("a", 0.9, 1000, 5), costing("b", 0.8, 10, 6)};
  const auto titles = [&] {
    std::string text;
    for (const ScatterSet& set : scatter_sets(results, {})) text += set.title + "; ";
    return text;
  };
  for (RunResult& result : results) result.task = "text, language model";
  EXPECT_EQ(titles(), "Loss; Accuracy; ");
  for (RunResult& result : results) result.bits_per_character = 2.0;
  EXPECT_EQ(titles(), "Bits per character; Loss; Accuracy; ");
}

// What stands in one chart can be compared.
TEST(Scatter, KeepsTasksApart) {
  std::vector<RunResult> results = {costing("a", 0.9, 1000, 5), costing("b", 0.8, 10, 6),
                                    costing("c", 0.7, 20, 7), costing("d", 0.6, 30, 8)};
  results[1].task = results[2].task = "cifar10, classification";
  results[3].task = "mnist, classification";
  const std::vector<ScatterSet> sets = scatter_sets(results, {});
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[0].title, "Accuracy: cifar10, classification");
  for (const ChartSeries& series : sets[0].charts[0].series) {
    EXPECT_TRUE(series.run == 1 || series.run == 2);
  }
}

}  // namespace
}  // namespace lacuna::chart_test
