// Chart: curves or bars with a title and axes, made from runs; as inline SVG, and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/report/run_data.hpp"
#include "lacuna/framework/report/run_groups.hpp"
#include "lacuna/framework/report/styles.hpp"

namespace lacuna {

struct ChartSeries {
  std::string label;
  CurveStyle style = {};
  Curve curve = {};
  int run = 0;  ///< its place among the runs
};

/// Runs of one setting with different seeds.
struct ChartBand {
  std::string label;
  CurveStyle style = {};
  CurveBand band = {};
  std::vector<size_t> runs = {};
};

enum class ChartUnit { Plain, Percent, Count };
enum class ChartScale { Linear, Logarithmic };
/// Curves over steps; bars over [x, x + bar_width); or a point for each run.
enum class ChartKind { Curves, Histogram, Scatter };

struct Chart {
  std::string id;
  std::string title;
  std::string x_label = "step";
  std::string y_label = {};
  ChartKind kind = ChartKind::Curves;
  ChartUnit unit = ChartUnit::Plain, x_unit = ChartUnit::Plain;
  ChartScale scale = ChartScale::Linear, x_scale = ChartScale::Linear;
  bool is_from_zero = false;  ///< the axis of values begins at 0
  double bar_width = 0.0;
  std::vector<ChartSeries> series = {};
  std::vector<ChartBand> bands = {};  ///< drawn instead of the series where there are some
};

/// At most `most` points, the first and the last among them, evenly chosen.
Curve thinned(const Curve& curve, size_t most);

/// Loss, accuracy, learning rate and time of a step: of one run its splits in one chart, of several
/// a chart for each split with a curve for each run, and where groups hold more than one run a band
/// for each of them. Charts without a point are left out.
std::vector<Chart> overview_charts(const std::vector<RunData>& runs,
                                   const std::vector<RunGroup>& groups = {});
/// Density, churn, positions ever active, dead rows and columns, and fan-in of one layer.
std::vector<Chart> layer_charts(const LayerData& layer, const std::string& id_prefix);

/// Round numbers within [low, high], `most` of them at most, and no nearer to each other than
/// `least`: 1 for what is counted.
std::vector<double> round_ticks(double low, double high, int most, double least = 0.0);

/// *Requires* a point. No script and nothing outside of it is needed to show it. Curves have at
/// most `most` points, fewer where there are many.
std::string svg_of(const Chart& chart, int width, int height, size_t most = 600);
/// How many points a curve has on a page of so many runs: 2000 of up to four, of more fewer, so
/// that the page does not grow with their number.
size_t points_of_a_curve(size_t runs);
/// The same of the layers' curves, by the number of layers of all runs.
size_t points_of_a_layer(const std::vector<RunData>& runs);
/// As docs/guides/report.md describes it; curves thinned to `most` points, with the digits of
/// float32, or six where there are fewer points than that.
Config to_json(const Chart& chart, size_t most = 2000);

}  // namespace lacuna
