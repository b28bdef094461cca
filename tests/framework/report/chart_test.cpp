// Ticks and thinning: what a chart shows of its numbers.
#include "lacuna/framework/report/chart.hpp"

#include <gtest/gtest.h>

namespace lacuna {
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
  EXPECT_EQ(points.substr(0, 5), "62.0,");  // where the axis begins
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
  EXPECT_EQ(points_of_a_curve(10), 2000u);
  EXPECT_EQ(points_of_a_curve(80), 250u);
  EXPECT_EQ(points_of_a_curve(100000), 100u);
  Chart chart{.id = "c", .title = "t"};
  Curve curve;
  for (int i = 0; i < 5000; ++i) curve.add(i, i % 7);
  for (int i = 0; i < 20; ++i) chart.series.push_back({"s", i, false, curve});
  const size_t of_twenty = svg_of(chart, 600, 300).size();
  for (int i = 0; i < 40; ++i) chart.series.push_back({"s", i, false, curve});
  EXPECT_LT(svg_of(chart, 600, 300).size(), of_twenty * 5 / 4);
  EXPECT_EQ(to_json(chart, 100).at("series").items()[0].at("x").items().size(), 100u);
}

}  // namespace
}  // namespace lacuna
