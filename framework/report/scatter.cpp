#include "lacuna/framework/report/scatter.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "lacuna/framework/report/tasks.hpp"

namespace lacuna {
namespace {

struct Quantity {
  const char *key, *label;
  double RunResult::*member;
  ChartUnit unit = ChartUnit::Plain;
  double factor = 1.0;
};

constexpr Quantity kCosts[] = {
    {"density", "density", &RunResult::density, ChartUnit::Percent},
    {"nnz", "nonzeros", &RunResult::nnz},
    {"memory", "memory of parameters, MB", &RunResult::parameter_bytes, ChartUnit::Plain, 1e-6},
    {"time", "training time, s", &RunResult::train_seconds}};

constexpr Quantity kGains[] = {
    {"accuracy", "accuracy", &RunResult::accuracy, ChartUnit::Percent},
    {"precision", "precision at 1", &RunResult::precision_at_1, ChartUnit::Percent},
    {"r2", "R²", &RunResult::r2},
    {"bits", "bits per character", &RunResult::bits_per_character},
    {"loss", "loss", &RunResult::loss}};

// What runs of a task are ranked by comes first: of language models the bits, else the loss.
std::vector<Quantity> gains_of(const std::string& task) {
  std::vector<Quantity> gains(std::begin(kGains), std::end(kGains));
  if (!task.ends_with("language model")) return gains;
  std::ranges::reverse(gains);
  std::swap(gains[0], gains[1]);
  return gains;
}

// Where the largest is more than twenty times the least.
ChartScale scale_of(double least, double most) {
  return least > 0.0 && most > 20.0 * least ? ChartScale::Logarithmic : ChartScale::Linear;
}

std::vector<CurveStyle> styles_of(size_t runs, const std::vector<RunGroup>& groups) {
  std::vector<CurveStyle> styles;
  for (size_t i = 0; i < runs; ++i) styles.push_back(style_of(static_cast<int>(i)));
  if (!has_repetitions(groups)) return styles;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const size_t run : groups[g].runs) styles[run] = style_of(static_cast<int>(g));
  }
  return styles;
}

// *Requires* known values of both quantities in at least one run.
Chart scatter_chart(const std::vector<RunResult>& results, const std::vector<CurveStyle>& styles,
                    const std::vector<size_t>& runs, const Quantity& gain, const Quantity& cost) {
  Chart chart{.id = {},
              .title = fmt::format("{} against {}", gain.label, cost.label),
              .x_label = cost.label,
              .y_label = gain.label,
              .kind = ChartKind::Scatter,
              .unit = gain.unit,
              .x_unit = cost.unit};
  double least_x = INFINITY, most_x = 0.0, least_y = INFINITY, most_y = 0.0;
  for (const size_t run : runs) {
    const double x = results[run].*cost.member * cost.factor, y = results[run].*gain.member;
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    least_x = std::min(least_x, x), most_x = std::max(most_x, x);
    least_y = std::min(least_y, y), most_y = std::max(most_y, y);
    Curve point;
    point.add(x, y);
    chart.series.push_back({results[run].label, styles[run], point, static_cast<int>(run)});
  }
  chart.x_scale = scale_of(least_x, most_x);
  if (gain.member == &RunResult::loss) chart.scale = scale_of(least_y, most_y);
  constexpr double kSame = 0.01;  // of the largest: what is nearer is no difference
  if (most_x - least_x <= kSame * most_x) chart.series.clear();
  return chart;
}

}  // namespace

std::vector<ScatterSet> scatter_sets(const std::vector<RunResult>& results,
                                     const std::vector<RunGroup>& groups) {
  const std::vector<CurveStyle> styles = styles_of(results.size(), groups);
  const std::vector<std::string> tasks = tasks_of(results);
  std::vector<RunGroup> by_task = groups_of(tasks);
  std::vector<ScatterSet> sets;
  for (size_t t = 0; t < by_task.size(); ++t) {
    bool is_main = true;
    for (const Quantity& gain : gains_of(by_task[t].label)) {
      std::string title = gain.label;
      if (title[0] >= 'a' && title[0] <= 'z') title[0] -= 'a' - 'A';
      if (by_task.size() > 1) title += ": " + by_task[t].label;
      ScatterSet set{.title = title, .is_main = is_main};
      for (const Quantity& cost : kCosts) {
        Chart chart = scatter_chart(results, styles, by_task[t].runs, gain, cost);
        chart.id = fmt::format("scatter-{}-{}-{}", t, gain.key, cost.key);
        if (chart.series.size() > 1) set.charts.push_back(std::move(chart));
      }
      if (set.charts.empty()) continue;
      is_main = false;
      sets.push_back(std::move(set));
    }
  }
  return sets;
}

}  // namespace lacuna
