// Chart: curves or bars with a title and axes, made from runs; as inline SVG, and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/report/run_data.hpp"

namespace lacuna {

struct ChartSeries {
  std::string label;
  int colour = 0;  ///< of kChartColours, from the start again past its end
  bool is_dashed = false;
  Curve curve;
};

enum class ChartUnit { Plain, Percent, Count };
enum class ChartScale { Linear, Logarithmic };

struct Chart {
  std::string id;
  std::string title;
  std::string x_label = "step";
  ChartUnit unit = ChartUnit::Plain;
  ChartScale scale = ChartScale::Linear;
  bool is_from_zero = false;  ///< the axis of values begins at 0
  bool is_histogram = false;  ///< bars over [step, step + bar_width)
  double bar_width = 0.0;
  std::vector<ChartSeries> series = {};
};

/// Okabe and Ito's colours, which the colour-blind tell apart, without the pale ones.
inline constexpr const char* kChartColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                "#b07900", "#56b4e9", "#333333"};
const char* colour_of(int index);

/// At most `most` points, the first and the last among them, evenly chosen.
Curve thinned(const Curve& curve, size_t most);

/// Loss, accuracy, learning rate and time of a step: of one run its splits in one chart, of several
/// a chart for each split with a curve for each run. Charts without a point are left out.
std::vector<Chart> overview_charts(const std::vector<RunData>& runs);
/// Density, churn, positions ever active, dead rows and columns, and fan-in of one layer.
std::vector<Chart> layer_charts(const LayerData& layer, const std::string& id_prefix);

/// Round numbers within [low, high], `most` of them at most, and no nearer to each other than
/// `least`: 1 for what is counted.
std::vector<double> round_ticks(double low, double high, int most, double least = 0.0);

/// *Requires* a point. No script and nothing outside of it is needed to show it. Curves have at
/// most `most` points, fewer where there are many.
std::string svg_of(const Chart& chart, int width, int height, size_t most = 600);
/// How many points a curve has on a page of so many runs: 2000 of up to ten, of more fewer, so that
/// the page does not grow with their number.
size_t points_of_a_curve(size_t runs);
/// The same of the layers' curves, by the number of layers of all runs.
size_t points_of_a_layer(const std::vector<RunData>& runs);
/// As docs/guides/report.md describes it; curves thinned to `most` points, with the digits of
/// float32.
Config to_json(const Chart& chart, size_t most = 2000);

}  // namespace lacuna
