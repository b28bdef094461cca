#include "lacuna/framework/report/chart.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

namespace lacuna {
namespace {

constexpr int64_t kMostBars = 24;

// Losses and errors that fall by much are told apart on a logarithmic scale alone.
ChartScale scale_for(const Chart& chart) {
  double least = INFINITY, most = 0.0;
  for (const ChartSeries& series : chart.series) {
    for (const double value : series.curve.values) {
      least = std::min(least, value), most = std::max(most, value);
    }
  }
  return least > 0.0 && most > 20.0 * least ? ChartScale::Logarithmic : ChartScale::Linear;
}

void add_series(Chart& chart, std::string label, int colour, const Curve& curve,
                bool is_dashed = false) {
  if (curve.empty()) return;
  chart.series.push_back({std::move(label), colour, is_dashed, curve});
}

void add_chart(std::vector<Chart>& charts, Chart chart) {
  if (!chart.series.empty()) charts.push_back(std::move(chart));
}

const Curve& curve_of(const RunData& run, const std::string& split, const std::string& key) {
  static const Curve kEmpty;
  const auto curves = run.splits.find(split);
  if (curves == run.splits.end()) return kEmpty;
  const auto curve = curves->second.find(key);
  return curve == curves->second.end() ? kEmpty : curve->second;
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] -= 'a' - 'A';
  return text;
}

constexpr const char* kSplits[] = {"train", "validation", "test"};

void add_metric(const std::vector<RunData>& runs, const char* key, const char* title,
                ChartUnit unit, std::vector<Chart>& charts) {
  const bool falls = key != std::string_view("r2") && unit == ChartUnit::Plain;
  const auto finish = [&](Chart chart) {
    if (falls) chart.scale = scale_for(chart);
    add_chart(charts, std::move(chart));
  };
  if (runs.size() == 1) {
    Chart chart{.id = std::string("chart-") + key, .title = title, .unit = unit};
    int colour = 0;
    for (const char* split : kSplits) {
      add_series(chart, split, colour++, curve_of(runs[0], split, key));
    }
    finish(std::move(chart));
    return;
  }
  for (const char* split : {"test", "validation", "train"}) {
    Chart chart{.id = fmt::format("chart-{}-{}", key, split),
                .title = fmt::format("{}, {}", title, split),
                .unit = unit};
    for (size_t i = 0; i < runs.size(); ++i) {
      const auto colour = static_cast<int>(i);
      add_series(chart, runs[i].name, colour, curve_of(runs[i], split, key),
                 i >= std::size(kChartColours));
    }
    finish(std::move(chart));
  }
}

void add_of_runs(const std::vector<RunData>& runs, Chart chart, auto&& curve,
                 std::vector<Chart>& charts) {
  for (size_t i = 0; i < runs.size(); ++i) {
    add_series(chart, runs[i].name, static_cast<int>(i), curve(runs[i]),
               i >= std::size(kChartColours));
  }
  add_chart(charts, std::move(chart));
}

const char* name_of(ChartUnit unit) {
  if (unit == ChartUnit::Percent) return "percent";
  return unit == ChartUnit::Count ? "count" : "plain";
}

Chart fan_in_chart(const LayerData& layer, const std::string& id) {
  Chart chart{.id = id,
              .title = fmt::format("Fan-in at step {}", layer.fan_in_step),
              .x_label = "nonzeros of a row",
              .unit = ChartUnit::Count,
              .is_histogram = true};
  if (layer.fan_in.empty()) return chart;
  const int64_t low = std::ranges::min(layer.fan_in), high = std::ranges::max(layer.fan_in);
  const int64_t width = (high - low + kMostBars) / kMostBars;
  std::vector<int64_t> rows(static_cast<size_t>((high - low) / width + 1), 0);
  for (const int64_t count : layer.fan_in) ++rows[static_cast<size_t>((count - low) / width)];
  Curve bars;
  for (size_t i = 0; i < rows.size(); ++i) {
    bars.add(static_cast<double>(low + static_cast<int64_t>(i) * width),
             static_cast<double>(rows[i]));
  }
  chart.bar_width = static_cast<double>(width);
  add_series(chart, "rows", 0, bars);
  return chart;
}

}  // namespace

const char* colour_of(int index) {
  return kChartColours[static_cast<size_t>(index) % std::size(kChartColours)];
}

Curve thinned(const Curve& curve, size_t most) {
  const size_t count = curve.steps.size();
  if (count <= most) return curve;
  Curve result;
  for (size_t i = 0; i < most; ++i) {
    const size_t place = i * (count - 1) / (most - 1);
    result.add(curve.steps[place], curve.values[place]);
  }
  return result;
}

std::vector<Chart> overview_charts(const std::vector<RunData>& runs) {
  std::vector<Chart> charts;
  add_metric(runs, "loss", "Loss", ChartUnit::Plain, charts);
  add_metric(runs, "accuracy", "Accuracy", ChartUnit::Percent, charts);
  add_metric(runs, "top5_accuracy", "Top-5 accuracy", ChartUnit::Percent, charts);
  add_metric(runs, "r2", "R²", ChartUnit::Plain, charts);
  add_metric(runs, "rmse", "RMSE", ChartUnit::Plain, charts);
  add_metric(runs, "mae", "MAE", ChartUnit::Plain, charts);
  add_metric(runs, "perplexity", "Perplexity", ChartUnit::Plain, charts);
  add_of_runs(
      runs, {.id = "chart-lr", .title = "Learning rate"},
      [](const RunData& run) { return curve_of(run, "train", "lr"); }, charts);
  add_of_runs(
      runs, {.id = "chart-step-time", .title = "Time of a step, ms"},
      [](const RunData& run) {
        Curve curve = run.step_seconds;
        for (double& value : curve.values) value *= 1000.0;
        return curve;
      },
      charts);
  return charts;
}

std::vector<Chart> layer_charts(const LayerData& layer, const std::string& id_prefix) {
  std::vector<Chart> charts;
  Chart density{.id = id_prefix + "-density",
                .title = "Density",
                .unit = ChartUnit::Percent,
                .is_from_zero = true};
  add_series(density, "target", 1, layer.target, true);
  add_series(density, "actual", 0, layer.actual);
  add_chart(charts, std::move(density));
  Chart churn{.id = id_prefix + "-churn",
              .title = "Churn: positions of an update",
              .unit = ChartUnit::Count};
  add_series(churn, "dropped", 1, layer.dropped);
  add_series(churn, "grown", 2, layer.grown, true);
  add_chart(charts, std::move(churn));
  Chart ever{.id = id_prefix + "-ever-active",
             .title = "Positions ever active (R_s)",
             .unit = ChartUnit::Percent,
             .is_from_zero = true};
  add_series(ever, "ever active", 0, layer.ever_active);
  add_chart(charts, std::move(ever));
  Chart dead{.id = id_prefix + "-dead", .title = "Dead rows and columns", .unit = ChartUnit::Count};
  add_series(dead, "rows", 1, layer.dead_rows);
  add_series(dead, "columns", 0, layer.dead_columns, true);
  add_chart(charts, std::move(dead));
  add_chart(charts, fan_in_chart(layer, id_prefix + "-fan-in"));
  return charts;
}

size_t points_of_a_curve(size_t runs) {
  constexpr size_t kMostPoints = 2000, kOfAllRuns = 20000, kLeast = 100;
  return std::clamp(kOfAllRuns / std::max<size_t>(runs, 1), kLeast, kMostPoints);
}

size_t points_of_a_layer(const std::vector<RunData>& runs) {
  size_t layers = 0;
  for (const RunData& run : runs) layers += run.layers.size();
  return points_of_a_curve(std::max(layers, runs.size()));
}

namespace {

// 100, and not 100.0.
Config numbers_of(const std::vector<double>& values) {
  constexpr double kWhole = 9007199254740992.0;  // beyond it every double is
  Config list = Config::list();
  for (const double value : values) {
    const bool is_whole = value == std::floor(value) && std::abs(value) < kWhole;
    list.push_back(is_whole ? Config(static_cast<int64_t>(value))
                            : Config(static_cast<float>(value)));
  }
  return list;
}

}  // namespace

Config to_json(const Chart& chart, size_t most) {
  Config series = Config::list();
  for (const ChartSeries& s : chart.series) {
    const Curve curve = thinned(s.curve, most);
    series.push_back(Config::map({{"label", s.label},
                                  {"colour", colour_of(s.colour)},
                                  {"dashed", s.is_dashed},
                                  {"points", static_cast<int64_t>(s.curve.steps.size())},
                                  {"x", numbers_of(curve.steps)},
                                  {"y", numbers_of(curve.values)}}));
  }
  const bool is_log = chart.scale == ChartScale::Logarithmic;
  Config result = Config::map({{"id", chart.id},
                               {"title", capital(chart.title)},
                               {"x_label", chart.x_label},
                               {"unit", name_of(chart.unit)},
                               {"scale", is_log ? "log" : "linear"},
                               {"from_zero", chart.is_from_zero},
                               {"kind", chart.is_histogram ? "histogram" : "curves"}});
  if (chart.is_histogram) result.set("bar_width", chart.bar_width);
  result.set("series", series);
  return result;
}

}  // namespace lacuna
