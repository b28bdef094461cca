#include "lacuna/framework/report/chart.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace lacuna {
namespace {

constexpr int64_t kMostBars = 24;

// Losses and errors that fall by much can only be distinguished on a logarithmic scale.
ChartScale scale_for(const Chart& chart) {
  double least = INFINITY, most = 0.0;
  for (const ChartSeries& series : chart.series) {
    for (const double value : series.curve.values) {
      least = std::min(least, value), most = std::max(most, value);
    }
  }
  return least > 0.0 && most > 20.0 * least ? ChartScale::Logarithmic : ChartScale::Linear;
}

void add_series(Chart& chart, std::string label, CurveStyle style, const Curve& curve,
                size_t run = 0) {
  if (curve.empty()) return;
  chart.series.push_back({std::move(label), style, curve, static_cast<int>(run)});
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

// A curve for each run, and a band for each group where these hold more than one.
template <class CurveOf>
void add_runs(const std::vector<RunData>& runs, const std::vector<RunGroup>& groups, Chart& chart,
              const CurveOf& curve_of_run) {
  for (size_t i = 0; i < runs.size(); ++i) {
    add_series(chart, runs[i].label, style_of(static_cast<int>(i)), curve_of_run(runs[i]), i);
  }
  if (!has_repetitions(groups)) return;
  for (size_t g = 0; g < groups.size(); ++g) {
    std::vector<const Curve*> curves;
    for (const ChartSeries& series : chart.series) {
      const auto run = static_cast<size_t>(series.run);
      if (std::ranges::find(groups[g].runs, run) != groups[g].runs.end()) {
        curves.push_back(&series.curve);
      }
    }
    if (curves.empty()) continue;
    chart.bands.push_back(
        {groups[g].label, style_of(static_cast<int>(g)), band_of(curves), groups[g].runs});
  }
}

// What is judged, in the words of its axis.
struct Metric {
  const char *key, *title, *axis;
  ChartUnit unit = ChartUnit::Plain;
  bool falls = true;
};

constexpr Metric kMetrics[] = {
    {"loss", "Loss", "loss"},
    {"accuracy", "Accuracy", "accuracy", ChartUnit::Percent, false},
    {"top5_accuracy", "Top-5 accuracy", "top-5 accuracy", ChartUnit::Percent, false},
    {"precision_at_1", "Precision at 1", "precision at 1", ChartUnit::Percent, false},
    {"precision_at_3", "Precision at 3", "precision at 3", ChartUnit::Percent, false},
    {"precision_at_5", "Precision at 5", "precision at 5", ChartUnit::Percent, false},
    {"r2", "R²", "R²", ChartUnit::Plain, false},
    {"rmse", "RMSE", "root mean squared error"},
    {"mae", "MAE", "mean absolute error"},
    {"perplexity", "Perplexity", "perplexity"},
    {"bits_per_character", "Bits per character", "bits per character"}};

void add_metric(const std::vector<RunData>& runs, const std::vector<RunGroup>& groups,
                const Metric& metric, std::vector<Chart>& charts) {
  const auto finish = [&](Chart chart) {
    if (metric.falls) chart.scale = scale_for(chart);
    add_chart(charts, std::move(chart));
  };
  const std::string id = std::string("chart-") + metric.key;
  if (runs.size() == 1) {
    Chart chart{.id = id, .title = metric.title, .y_label = metric.axis, .unit = metric.unit};
    int index = 0;
    for (const char* split : kSplits) {
      add_series(chart, split, style_of(index++), curve_of(runs[0], split, metric.key));
    }
    finish(std::move(chart));
    return;
  }
  for (const char* split : {"test", "validation", "train"}) {
    Chart chart{.id = id + "-" + split,
                .title = fmt::format("{}, {}", metric.title, split),
                .y_label = metric.axis,
                .unit = metric.unit};
    add_runs(runs, groups, chart,
             [&](const RunData& run) { return curve_of(run, split, metric.key); });
    finish(std::move(chart));
  }
}

template <class CurveOf>
void add_of_runs(const std::vector<RunData>& runs, const std::vector<RunGroup>& groups, Chart chart,
                 const CurveOf& curve, std::vector<Chart>& charts) {
  add_runs(runs, groups, chart, curve);
  if (runs.size() == 1) {
    for (ChartSeries& series : chart.series) series.label = chart.y_label;
  }
  add_chart(charts, std::move(chart));
}

const char* name_of(ChartKind kind) {
  if (kind == ChartKind::Histogram) return "histogram";
  return kind == ChartKind::Scatter ? "scatter" : "curves";
}

const char* name_of(ChartUnit unit) {
  if (unit == ChartUnit::Percent) return "percent";
  return unit == ChartUnit::Count ? "count" : "plain";
}

Chart fan_in_chart(const LayerData& layer, const std::string& id) {
  Chart chart{.id = id,
              .title = fmt::format("Fan-in at step {}", layer.fan_in_step),
              .x_label = "nonzeros of a row",
              .y_label = "rows",
              .kind = ChartKind::Histogram,
              .unit = ChartUnit::Count};
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
  add_series(chart, "rows", style_of(0), bars);
  return chart;
}

}  // namespace

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

std::vector<Chart> overview_charts(const std::vector<RunData>& runs,
                                   const std::vector<RunGroup>& groups) {
  std::vector<Chart> charts;
  for (const Metric& metric : kMetrics) add_metric(runs, groups, metric, charts);
  add_of_runs(
      runs, groups, {.id = "chart-lr", .title = "Learning rate", .y_label = "learning rate"},
      [](const RunData& run) { return curve_of(run, "train", "lr"); }, charts);
  add_of_runs(
      runs, groups, {.id = "chart-step-time", .title = "Time of a step, ms", .y_label = "ms"},
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
  const CurveStyle blue = style_of(0), orange = style_of(1), green = style_of(2);
  const auto dashed = [](CurveStyle style) { return CurveStyle{style.colour, 1}; };
  Chart density{.id = id_prefix + "-density",
                .title = "Density",
                .y_label = "density",
                .unit = ChartUnit::Percent,
                .is_from_zero = true};
  add_series(density, "target", dashed(orange), layer.target);
  add_series(density, "actual", blue, layer.actual);
  add_chart(charts, std::move(density));
  Chart churn{.id = id_prefix + "-churn",
              .title = "Churn: positions of an update",
              .y_label = "positions",
              .unit = ChartUnit::Count};
  add_series(churn, "dropped", orange, layer.dropped);
  add_series(churn, "grown", dashed(green), layer.grown);
  add_chart(charts, std::move(churn));
  Chart ever{.id = id_prefix + "-ever-active",
             .title = "Positions ever active (R_s)",
             .y_label = "share of positions",
             .unit = ChartUnit::Percent,
             .is_from_zero = true};
  add_series(ever, "ever active", blue, layer.ever_active);
  add_chart(charts, std::move(ever));
  Chart dead{.id = id_prefix + "-dead",
             .title = "Dead rows and columns",
             .y_label = "rows, columns",
             .unit = ChartUnit::Count};
  add_series(dead, "rows", orange, layer.dead_rows);
  add_series(dead, "columns", dashed(blue), layer.dead_columns);
  add_chart(charts, std::move(dead));
  add_chart(charts, fan_in_chart(layer, id_prefix + "-fan-in"));
  return charts;
}

size_t points_of_a_curve(size_t runs) {
  constexpr size_t kMostPoints = 2000, kOfAllRuns = 8000, kLeast = 60;
  return std::clamp(kOfAllRuns / std::max<size_t>(runs, 1), kLeast, kMostPoints);
}

size_t points_of_a_layer(const std::vector<RunData>& runs) {
  size_t layers = 0;
  for (const RunData& run : runs) layers += run.layers.size();
  return points_of_a_curve(std::max(layers, runs.size()));
}

namespace {

// More digits are of no use where a curve is thinned to what a screen shows.
constexpr size_t kOfFewPoints = 1000;

// 100, and not 100.0.
Config numbers_of(const std::vector<double>& values, size_t most) {
  constexpr double kWhole = 9007199254740992.0;  // beyond it every double is
  Config list = Config::list();
  for (const double value : values) {
    const bool is_whole = value == std::floor(value) && std::abs(value) < kWhole;
    list.push_back(is_whole              ? Config(static_cast<int64_t>(value))
                   : most < kOfFewPoints ? Config::plain(fmt::format("{:.6g}", value))
                                         : Config(static_cast<float>(value)));
  }
  return list;
}

Config series_json(const Chart& chart, size_t most) {
  Config list = Config::list();
  for (const ChartSeries& s : chart.series) {
    const Curve curve = thinned(s.curve, most);
    list.push_back(Config::map({{"label", s.label},
                                {"run", s.run},
                                {"colour", colour_of(s.style.colour)},
                                {"colour_index", s.style.colour},
                                {"dashed", s.style.dash != 0},
                                {"dash", dashes_of(s.style.dash)},
                                {"points", static_cast<int64_t>(s.curve.steps.size())},
                                {"x", numbers_of(curve.steps, most)},
                                {"y", numbers_of(curve.values, most)}}));
  }
  return list;
}

Config bands_json(const Chart& chart, size_t most) {
  Config list = Config::list();
  for (const ChartBand& b : chart.bands) {
    const Curve mean = thinned(b.band.mean, most);
    const Curve spread = thinned({b.band.mean.steps, b.band.spread}, most);
    Config runs = Config::list();
    for (const size_t run : b.runs) runs.push_back(static_cast<int64_t>(run));
    list.push_back(Config::map({{"label", b.label},
                                {"runs", runs},
                                {"colour", colour_of(b.style.colour)},
                                {"colour_index", b.style.colour},
                                {"dash", dashes_of(b.style.dash)},
                                {"x", numbers_of(mean.steps, most)},
                                {"mean", numbers_of(mean.values, most)},
                                {"spread", numbers_of(spread.values, most)}}));
  }
  return list;
}

}  // namespace

Config to_json(const Chart& chart, size_t most) {
  const bool is_log = chart.scale == ChartScale::Logarithmic;
  Config result = Config::map({{"id", chart.id},
                               {"title", capital(chart.title)},
                               {"x_label", chart.x_label},
                               {"y_label", chart.y_label},
                               {"unit", name_of(chart.unit)},
                               {"scale", is_log ? "log" : "linear"},
                               {"from_zero", chart.is_from_zero},
                               {"kind", name_of(chart.kind)}});
  if (chart.kind == ChartKind::Histogram) result.set("bar_width", chart.bar_width);
  result.set("series", series_json(chart, most));
  if (!chart.bands.empty()) result.set("bands", bands_json(chart, most));
  return result;
}

}  // namespace lacuna
